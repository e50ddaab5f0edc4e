//! `POST /v1/transactions`: sends a signed swap to every node, again until it is confirmed or cannot land.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use sluice_transaction::SignedSwap;
use utoipa::ToSchema;

use super::wire::TransactionStatus;
use crate::{
    error::{ApiError, ProblemBody},
    extract::{Amount, StrictJson},
    followed::Signed,
    state::AppState,
};

/// Most bytes of a body that are read: the longest transaction in base64.
const BODY_LIMIT: usize = 8 * 1024;

/// Body of `POST /v1/transactions`.
// Required fields are options, so that an absent one is refused by its name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendRequest {
    /// Base64 of the whole transaction, signed by every signer.
    #[schema(required, nullable = false)]
    transaction: Option<String>,
    /// Last block height at which it can land, as it was answered with the transaction. Without it a transaction that did not
    /// land may end as `unknown` where it would have been `expired`. Default that of a blockhash of now, which is later.
    last_valid_block_height: Option<Amount>,
}

/// Sends a signed swap
///
/// To every node that the service knows, without preflight, and again every two seconds until a supermajority voted for it or
/// no block can have it any more. Only transactions that call the guard themselves, with a valid signature of every signer, are
/// taken. The answer comes as soon as a node has accepted it; `acceptedBy` is 0 where none has yet, which asks for nothing, since
/// it is sent again. What becomes of it `GET /v1/transactions/{signature}` says, and its stream. Sending it twice changes
/// nothing.
#[utoipa::path(
    post,
    path = "/v1/transactions",
    tag = "transactions",
    operation_id = "sendTransaction",
    request_body = SendRequest,
    responses(
        (status = 202, description = "It is sent, or was; what is known of it.", body = TransactionStatus),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment, and not sent; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn send(
    State(state): State<AppState>,
    StrictJson(body): StrictJson<SendRequest, BODY_LIMIT>,
) -> Result<(StatusCode, Json<TransactionStatus>), ApiError> {
    let text = body.transaction.ok_or(ApiError::MissingField {
        field: "transaction",
    })?;
    let bytes = BASE64_STANDARD.decode(&text).map_err(|_| {
        ApiError::invalid(
            "transaction",
            "is no base64; encode the transaction's bytes so",
        )
    })?;
    let swap = SignedSwap::read(&bytes)
        .map_err(|fault| ApiError::invalid("transaction", fault.to_string()))?;
    let signed = Signed {
        signature: swap.signature,
        transaction: Arc::from(text),
        last_valid_block_height: body.last_valid_block_height.map(|height| height.0),
        has_nonce: swap.has_nonce,
    };
    let followed = state.sender().send(signed).await?;
    let status = TransactionStatus::new(&swap.signature, &followed);
    Ok((StatusCode::ACCEPTED, Json(status)))
}

//! `POST /v1/swap/check`: whether a transaction is the one that is built for a body, or where it differs first.

use axum::{Json, extract::State};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use sluice_transaction::comparison::{Difference, NoTransaction, blockhash, difference};
use utoipa::ToSchema;

use super::{
    request::{BODY_LIMIT, SwapRequest},
    transaction::built,
};
use crate::{
    error::{ApiError, ProblemBody},
    extract::{StrictJson, optional_object},
    state::AppState,
};

/// Most bytes of a body that are read: those of a swap's, and the longest transaction in base64.
const CHECK_LIMIT: usize = BODY_LIMIT + 8 * 1024;

/// Body of `POST /v1/swap/check`.
// Required fields are options, so that an absent one is refused by its name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckRequest {
    /// Base64 of the whole transaction, signed or not.
    #[schema(required, nullable = false)]
    transaction: Option<String>,
    /// The body that it was asked for with. Where a quote was made or renewed for it, the `quote` of the answer belongs here,
    /// without `refresh`: what is built again is otherwise for a quote of now.
    #[schema(required, nullable = false)]
    #[serde(default, deserialize_with = "optional_object")]
    request: Option<SwapRequest>,
}

/// Whether the transaction is the one that is built for the body.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckResponse {
    /// Whether it has no other difference than its blockhash and its signatures, which are not looked at.
    equal: bool,
    /// The first difference; null where there is none.
    #[schema(required)]
    difference: Option<DifferenceView>,
}

/// Where a transaction differs from the one that is built.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TransactionDifference)]
struct DifferenceView {
    /// A path into the message, such as `instructions[2].data`.
    at: String,
    /// What is built, as text; bytes as hexadecimal digits.
    built: String,
    /// What the transaction has there.
    found: String,
}

impl From<Difference> for DifferenceView {
    fn from(difference: Difference) -> Self {
        Self {
            at: difference.at,
            built: difference.planned,
            found: difference.found,
        }
    }
}

/// Whether a transaction is what it is said to be
///
/// For who is to sign or pay for a transaction that another one asked for: it is built once more for the body, and compared
/// byte for byte, all but the blockhash (or the value of a nonce) and the signatures. What decides a transaction is looked up anew: when the wallet's
/// token accounts came or went meanwhile, or what swaps use was learned anew (`computeUnitLimit`), the difference says so. A
/// body for which nothing can be built is refused as `/v1/swap/transaction` refuses it.
#[utoipa::path(
    post,
    path = "/v1/swap/check",
    tag = "swap",
    operation_id = "checkTransaction",
    request_body = CheckRequest,
    responses(
        (status = 200, description = "Whether it is, or where it differs first.", body = CheckResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn check(
    State(state): State<AppState>,
    StrictJson(body): StrictJson<CheckRequest, CHECK_LIMIT>,
) -> Result<Json<CheckResponse>, ApiError> {
    let text = body.transaction.ok_or(ApiError::MissingField {
        field: "transaction",
    })?;
    let found = BASE64_STANDARD.decode(text).map_err(|_| {
        ApiError::invalid(
            "transaction",
            "is no base64; encode the transaction's bytes so",
        )
    })?;
    let request = body
        .request
        .ok_or(ApiError::MissingField { field: "request" })?;
    let unreadable = |fault: NoTransaction| ApiError::invalid("transaction", fault.to_string());
    let blockhash = blockhash(&found).map_err(unreadable)?;
    let swap = request.check(&state.rpc().exchange().program)?;
    let built = built(&state, &swap, Some(blockhash)).await?;
    let difference = difference(&built.unsigned, &found)
        .map_err(unreadable)?
        .map(DifferenceView::from);
    Ok(Json(CheckResponse {
        equal: difference.is_none(),
        difference,
    }))
}

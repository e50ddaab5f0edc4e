//! `POST /v1/transactions/explain`: what any transaction does, instruction by instruction, and what it may cost.

use axum::{Json, extract::State};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use sluice_transaction::{
    comparison::NoTransaction,
    explanation::{Explanation, LookedUp},
};
use utoipa::ToSchema;

use super::{
    explained::{ExecutionView, ExplanationResponse},
    signature,
};
use crate::{
    error::{ApiError, ProblemBody},
    extract::StrictJson,
    state::AppState,
};

/// Most bytes of a body that are read: the longest transaction in base64.
const BODY_LIMIT: usize = 8 * 1024;

/// Body of `POST /v1/transactions/explain`: one of the two.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExplainRequest {
    /// Base64 of the whole transaction, signed or not.
    transaction: Option<String>,
    /// The signature, base 58, of a transaction that a confirmed block has: it is read from the node.
    signature: Option<String>,
}

/// What a transaction does
///
/// Any transaction, of this service or another one's: each instruction in words, with its accounts by their roles where its program is
/// known here (the guard, the exchange, the token programs, the associated token program, the system program, the compute budget,
/// memo), and what it may cost. It is read from the bytes alone, so it says what is signed, not what will come of it: `simulate` of
/// `/v1/swap/transaction` says that, and whether it is what this service builds for a request `/v1/swap/check`. What is not known
/// here is said to be unknown. Of a `signature` `execution` says what became of it.
#[utoipa::path(
    post,
    path = "/v1/transactions/explain",
    tag = "transactions",
    operation_id = "explainTransaction",
    request_body = ExplainRequest,
    responses(
        (status = 200, description = "What it does.", body = ExplanationResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn explain(
    State(state): State<AppState>,
    StrictJson(body): StrictJson<ExplainRequest, BODY_LIMIT>,
) -> Result<Json<ExplanationResponse>, ApiError> {
    match (body.transaction, body.signature) {
        (Some(text), None) => explain_bytes(&state, &text).map(Json),
        (None, Some(text)) => explain_landed(&state, &text).await.map(Json),
        (Some(_), Some(_)) => Err(ApiError::invalid(
            "signature",
            "stands beside transaction; send one of the two",
        )),
        (None, None) => Err(ApiError::MissingField {
            field: "transaction",
        }),
    }
}

fn explain_bytes(state: &AppState, text: &str) -> Result<ExplanationResponse, ApiError> {
    let bytes = BASE64_STANDARD.decode(text).map_err(|_| {
        ApiError::invalid(
            "transaction",
            "is no base64; encode the transaction's bytes so",
        )
    })?;
    let table = state.rpc().lookup_table();
    let explanation = Explanation::read(
        &bytes,
        LookedUp::In(table.as_deref()),
        &state.rpc().exchange().program,
    );
    let explanation =
        explanation.map_err(|fault| ApiError::invalid("transaction", fault.to_string()))?;
    Ok(ExplanationResponse::new(&explanation, None))
}

async fn explain_landed(state: &AppState, text: &str) -> Result<ExplanationResponse, ApiError> {
    let signature = signature(text)?;
    let landed = state.rpc().landed(&signature).await?;
    let landed = landed.ok_or_else(|| ApiError::NotFound {
        what: "transaction of a confirmed block with the signature",
        id: signature.to_string(),
    })?;
    let exchange = &state.rpc().exchange().program;
    let looked_up = LookedUp::Resolved(&landed.looked_up);
    let explanation =
        Explanation::read(&landed.bytes, looked_up, exchange).map_err(|NoTransaction| {
            ApiError::RpcFailed(anyhow::anyhow!("a transaction of an unknown version"))
        })?;
    let execution = ExecutionView::new(&landed, exchange);
    Ok(ExplanationResponse::new(&explanation, Some(execution)))
}

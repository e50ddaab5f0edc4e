//! `POST /v1/swap/transaction`: a transaction that only lacks the user's signature.

use axum::{Json, extract::State};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;

use super::{BODY_LIMIT, plan::executable, request::SwapRequest};
use crate::{
    chain::assemble::{Plan, SolOutput},
    error::ApiError,
    extract::StrictJson,
    routes::quote::Quote,
    state::AppState,
};

/// Answer: the transaction, and beside it what it will do and cost.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionResponse {
    /// Base64 of an unsigned version-0 transaction.
    transaction: String,
    /// Its blockhash.
    blockhash: String,
    /// Last block height at which it can land; from the same fetch as the blockhash.
    last_valid_block_height: u64,
    compute_unit_limit: u32,
    compute_unit_price_micro_lamports: u64,
    /// Bytes; the network carries at most 1,232.
    size: usize,
    /// The quote that the guard enforces.
    quote: Quote,
    /// `unwrapped`, `leftWrapped`, or null when no SOL comes out or wrapping was not asked for.
    sol_output: Option<&'static str>,
}

/// Specification: the quote's `minimumOut` is enforced on chain as it stands; the priority fee never
/// exceeds `priorityFeeLamports`; token accounts that are absent are created; a wrapped SOL account
/// that was there before is never closed.
pub async fn transaction(
    State(state): State<AppState>,
    StrictJson(request): StrictJson<SwapRequest, BODY_LIMIT>,
) -> Result<Json<TransactionResponse>, ApiError> {
    let swap = request.with_quote()?;
    let executable = executable(&state, &swap)?;
    let accounts = executable.accounts;
    let addresses = [accounts.input_token_account, accounts.output_token_account];
    let (latest, [input, output]) = tokio::try_join!(
        state.rpc().latest_blockhash(),
        state.rpc().token_accounts(addresses),
    )?;
    let plan = Plan {
        accounts,
        amount_in: executable.quote.amount_in,
        minimum_out: executable.quote.minimum_out,
        input,
        output,
        wrap_and_unwrap_sol: swap.wrap_and_unwrap_sol,
        priority_fee: swap.priority_fee,
    };
    let assembled = plan
        .transaction(latest.blockhash)
        .map_err(|error| ApiError::Internal(error.into()))?;
    Ok(Json(TransactionResponse {
        transaction: BASE64_STANDARD.encode(&assembled.bytes),
        blockhash: latest.blockhash.to_string(),
        last_valid_block_height: latest.last_valid_block_height,
        compute_unit_limit: assembled.unit_limit,
        compute_unit_price_micro_lamports: assembled.unit_price,
        size: assembled.bytes.len(),
        quote: executable.quote,
        sol_output: assembled.sol_output.map(|output| match output {
            SolOutput::Unwrapped => "unwrapped",
            SolOutput::LeftWrapped => "leftWrapped",
        }),
    }))
}

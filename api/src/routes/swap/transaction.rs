//! `POST /v1/swap/transaction`: builds a transaction that lacks only the user's signature.

use axum::extract::State;
use base64::{Engine, prelude::BASE64_STANDARD};
use sluice_transaction::{Associated, TokenSide, TransactionPlan, compute_table::TokenShape};

use super::{
    executable::{ExecutableSwap, executable_swap},
    holdings::Holdings,
    request::{BODY_LIMIT, Swap, SwapRequest, transaction_request::TransactionRequest},
    response::TransactionResponse,
};
use crate::{
    error::{ApiError, ProblemBody},
    extract::StrictJson,
    rpc::UserAccounts,
    state::AppState,
};

/// A ready-to-sign transaction
///
/// The quote's `minimumOut` is enforced on chain as it stands; the priority fee never exceeds `priorityFeeLamports`;
/// token accounts that are absent are created; a wrapped SOL account that was there before is never closed, and what it
/// holds is used for the swap but never unwrapped. When the pool moves between this answer and the transaction's
/// execution, so far that less than `minimumOut` would arrive, the transaction fails with the guard's error 6000 and
/// costs no more than its fee: ask for a fresh quote then.
#[utoipa::path(
    post,
    path = "/v1/swap/transaction",
    tag = "swap",
    request_body = TransactionRequest,
    responses(
        (status = 200, description = "The transaction, and what it does and costs.", body = TransactionResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn transaction(
    State(state): State<AppState>,
    StrictJson(request): StrictJson<SwapRequest, BODY_LIMIT>,
) -> Result<TransactionResponse, ApiError> {
    let swap = request.with_quote()?;
    let executable = executable_swap(&state, &swap)?;
    let accounts = &executable.accounts;
    let (latest, user) = tokio::try_join!(
        state.rpc().latest_blockhash(),
        state.rpc().user_accounts(
            swap.user,
            accounts.input_token_account,
            accounts.output_token_account,
        ),
    )?;
    let holdings = Holdings::check(&swap, &executable, &user)?;
    let unsigned = transaction_plan(&state, &swap, &executable, &holdings, &user)
        .transaction(latest.blockhash)
        .map_err(|error| ApiError::Internal(error.into()))?;
    if swap.check_balance {
        let paid = Some((&unsigned.costs, user.lamports));
        holdings.require_balance(&executable, paid)?;
    }
    Ok(TransactionResponse::new(
        BASE64_STANDARD.encode(&unsigned.bytes),
        latest,
        executable,
        unsigned,
    ))
}

fn transaction_plan(
    state: &AppState,
    swap: &Swap,
    executable: &ExecutableSwap,
    holdings: &Holdings,
    user: &UserAccounts,
) -> TransactionPlan {
    let side = |(associated, token): (Associated, TokenShape), account| TokenSide {
        token,
        bump: associated.bump,
        account,
    };
    TransactionPlan {
        accounts: executable.accounts.clone(),
        terms: executable.terms,
        input: side(executable.input, holdings.input),
        output: side(executable.output, holdings.output),
        named_destination: swap.destination.is_some(),
        wrap_and_unwrap_sol: swap.wrap_and_unwrap_sol,
        priority_fee: swap.priority_fee,
        legacy: swap.legacy,
        rent: user.rent,
        exchange: state.exchange(),
    }
}

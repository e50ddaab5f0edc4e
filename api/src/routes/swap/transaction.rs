//! `POST /v1/swap/transaction`: a transaction that only lacks the user's signature.

use axum::extract::State;
use base64::{Engine, prelude::BASE64_STANDARD};
use sluice_transaction::{
    Associated,
    compute_table::TokenShape,
    plan::{Plan, Side},
};

use super::{
    executable::{Executable, executable},
    request::{BODY_LIMIT, Swap, SwapRequest, transaction_request::TransactionRequest},
    response::TransactionResponse,
    user::{Holdings, require_balance},
};
use crate::{
    error::{ApiError, ProblemBody, SwapRefusal},
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
    let executable = executable(&state, &swap)?;
    let accounts = &executable.accounts;
    let (latest, user) = tokio::try_join!(
        state.rpc().latest_blockhash(),
        state.rpc().user_accounts(
            swap.user,
            accounts.input_token_account,
            accounts.output_token_account,
        ),
    )?;
    let plan = plan(&state, &swap, &executable, &user)?;
    let assembled = plan
        .transaction(latest.blockhash)
        .map_err(|error| ApiError::Internal(error.into()))?;
    if swap.check_balance {
        let held = plan.input.account.map_or(0, |account| account.amount);
        let wrapped = assembled.costs.wrapped;
        require_balance(
            &plan.accounts.input_mint,
            held.saturating_add(wrapped),
            plan.terms.amount_in,
        )?;
        if user.lamports < assembled.costs.required {
            return Err(SwapRefusal::InsufficientBalance {
                unit: "lamports".to_owned(),
                held: user.lamports,
                needed: assembled.costs.required,
            }
            .into());
        }
    }
    Ok(TransactionResponse::new(
        BASE64_STANDARD.encode(&assembled.bytes),
        latest,
        executable,
        assembled,
    ))
}

fn plan(
    state: &AppState,
    swap: &Swap,
    executable: &Executable,
    user: &UserAccounts,
) -> Result<Plan, ApiError> {
    let holdings = Holdings::check(swap, executable, user)?;
    let side = |(associated, token): (Associated, TokenShape), account| Side {
        token,
        bump: associated.bump,
        account,
    };
    Ok(Plan {
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
    })
}

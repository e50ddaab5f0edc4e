//! `POST /v1/swap/instruction`: builds the guarded swap alone, for transactions of the caller's own.

use axum::{Json, extract::State};

use super::{
    executable::executable_swap,
    holdings::Holdings,
    request::{BODY_LIMIT, SwapRequest},
    response::InstructionResponse,
};
use crate::{
    error::{ApiError, ProblemBody},
    extract::StrictJson,
    state::AppState,
};

/// The bare swap instruction
///
/// A quote with a pool is enforced as it stands; without a pool one is generated, for the best pool of the two mints.
/// The caller handles the priority fee, the token accounts and wrapping, so `priorityFeeLamports`, `wrapAndUnwrapSol`, `wrapSol`,
/// `feePayer`, `transactionVersion` and `asLegacyTransaction` change nothing here. With `receiver` the output goes to a token
/// account of that wallet, SOL too, and the instruction states the wallet in its data. Names and shapes are those of
/// `TransactionInstruction` in `@solana/web3.js`; what JSON cannot carry, the caller converts: `programId` and each `pubkey`
/// of `keys` are strings and become `new PublicKey(…)`, and `data` is an array of integers and becomes `Buffer.from(…)`.
#[utoipa::path(
    post,
    path = "/v1/swap/instruction",
    tag = "swap",
    operation_id = "buildInstruction",
    request_body = SwapRequest,
    responses(
        (status = 200, description = "The instruction, and what its transaction must provide.", body = InstructionResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn instruction(
    State(state): State<AppState>,
    StrictJson(request): StrictJson<SwapRequest, BODY_LIMIT>,
) -> Result<Json<InstructionResponse>, ApiError> {
    let swap = request.check()?;
    let executable = executable_swap(&state, &swap, false)?;
    // The chain is asked only for what the request wants checked; otherwise the market has all it takes.
    if swap.source.is_some() || swap.destination.is_some() || swap.check_balance {
        let found = state.rpc().swap_accounts(executable.addresses(&swap));
        let holdings = Holdings::check(&swap, &executable, &found.await?)?;
        if swap.check_balance {
            holdings.require_balance(&swap, &executable, None)?;
        }
    }
    let units = executable.route.units(executable.terms, executable.units);
    let instruction = executable
        .route
        .guarded_swap(executable.terms, executable.receiver.as_ref());
    InstructionResponse::new(executable, instruction, units).map(Json)
}

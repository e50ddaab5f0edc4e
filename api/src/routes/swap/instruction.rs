//! `POST /v1/swap/instruction`: builds the guarded swap for transactions of the caller's own.

use axum::{Json, extract::State};

use super::{
    executable::executable_swap,
    holdings::Holdings,
    request::{BODY_LIMIT, SwapRequest},
    response::InstructionResponse,
    transaction::{check_wallets, transaction_plan},
};
use crate::{
    error::{ApiError, ProblemBody},
    extract::StrictJson,
    state::AppState,
};

/// The bare swap instruction
///
/// A quote with a pool is enforced as it stands; without a pool one is generated, for the best pool of the two mints.
/// Beside the swap are the instructions that make it a whole transaction, to be used in this order or not at all:
/// `computeBudgetInstructions`, `setupInstructions`, the swap, `cleanupInstructions`. They use no account but the associated
/// ones, so that the swap is the same without them: SOL is wrapped into the user's account, which is closed only where it
/// was absent, and SOL that comes out into an account that was there, or for `receiver`, stays wrapped (`solOutput`).
/// `transactionVersion`, `asLegacyTransaction`, `sizeHeadroom` and `nonceAccount` change nothing here. The user may be a program's address,
/// such as a multisig's vault, whose program signs. Names and shapes are those of
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
    let swap = request.check(&state.rpc().exchange().program)?;
    let executable = executable_swap(&state, &swap, true)?;
    let (latest, found) = tokio::try_join!(
        state.rpc().latest_blockhash(),
        state.rpc().swap_accounts(executable.addresses(&swap)),
    )?;
    let holdings = Holdings::check(&swap, &executable, &found)?;
    check_wallets(&state, &swap, &executable, &found, false)?;
    let apart = transaction_plan(&state, &swap, &executable, &holdings, &found).apart();
    if swap.check_balance {
        holdings.require_balance(&swap, &executable, &apart.costs, &found)?;
    }
    let fee_payer = swap.fee_payer.unwrap_or(swap.user);
    InstructionResponse::new(executable, apart, latest, &fee_payer).map(Json)
}

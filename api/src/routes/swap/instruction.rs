//! `POST /v1/swap/instruction`: the guarded swap alone, for callers who build their own transaction.

use axum::{Json, extract::State};
use serde::Serialize;

use super::{BODY_LIMIT, plan::executable, request::SwapRequest};
use crate::{
    chain::{assemble::guarded_swap, compute_budget::Work},
    error::ApiError,
    extract::StrictJson,
    routes::quote::Quote,
    state::AppState,
};

/// Answer: the instruction, and beside it what its transaction must provide.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstructionResponse {
    instruction: WireInstruction,
    /// The instruction's accounts once more, as an array: what a transaction builder takes.
    keys: Vec<Key>,
    /// The quote that the guard enforces.
    quote: Quote,
    /// Compute units of this instruction alone.
    compute_unit_limit: u32,
    token_accounts: TokenAccounts,
}

/// An instruction on the wire.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WireInstruction {
    /// JSON text of the list that [`InstructionResponse::keys`] holds.
    accounts: String,
    data: Vec<u8>,
    program_id: String,
}

/// One account of an instruction.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Key {
    pubkey: String,
    is_signer: bool,
    is_writable: bool,
}

/// The user's associated token accounts, which must exist when the instruction runs.
#[derive(Debug, Serialize)]
struct TokenAccounts {
    input: String,
    output: String,
}

/// Specification: a quote with a pool is enforced as it stands; without a pool one is generated. The
/// caller handles the priority fee, the token accounts and wrapping.
pub async fn instruction(
    State(state): State<AppState>,
    StrictJson(request): StrictJson<SwapRequest, BODY_LIMIT>,
) -> Result<Json<InstructionResponse>, ApiError> {
    let swap = request.with_or_without_quote()?;
    let executable = executable(&state, &swap)?;
    let accounts = &executable.accounts;
    let instruction = guarded_swap(
        accounts,
        executable.quote.amount_in,
        executable.quote.minimum_out,
    );
    let keys: Vec<Key> = instruction
        .accounts
        .iter()
        .map(|meta| Key {
            pubkey: meta.pubkey.to_string(),
            is_signer: meta.is_signer,
            is_writable: meta.is_writable,
        })
        .collect();
    let compute_unit_limit = Work::swap_only(accounts).unit_limit();
    let token_accounts = TokenAccounts {
        input: accounts.input_token_account.to_string(),
        output: accounts.output_token_account.to_string(),
    };
    Ok(Json(InstructionResponse {
        instruction: WireInstruction {
            accounts: serde_json::to_string(&keys)
                .map_err(|error| ApiError::Internal(error.into()))?,
            data: instruction.data,
            program_id: instruction.program_id.to_string(),
        },
        keys,
        quote: executable.quote,
        compute_unit_limit,
        token_accounts,
    }))
}

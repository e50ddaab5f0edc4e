//! Answer with the bare instruction, and with what a transaction needs beside it.

use cpmm::instruction::SwapAccounts;
use serde::Serialize;
use sluice_transaction::{ApartSwap, PlannedInstruction};
use solana_instruction::AccountMeta;
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use super::{super::executable::ExecutableSwap, CostsView, SolOutputView};
use crate::{
    error::ApiError,
    extract::{Address, Digits},
    routes::quote::{Amounts, Quote},
    rpc::LatestBlockhash,
};

/// The instruction, and beside it what its transaction must provide.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionResponse {
    instruction: WireInstruction,
    /// The instruction's accounts once more, as an array: what a transaction builder takes once each `pubkey` is an
    /// address of its own kind.
    keys: Vec<Key>,
    /// The quote that the guard enforces.
    quote: Quote,
    amounts: Amounts,
    /// Only for an exact output: what the pool takes now.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_in_string: Option<Digits>,
    /// Only with `platformFeeBps`: what of `quote.amountIn` the platform gets before the swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_fee: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_fee_string: Option<Digits>,
    /// What of it arrives at the platform: less where the mint withholds a fee of each transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_fee_received: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_fee_received_string: Option<Digits>,
    /// Last slot in which the guard lets the swap execute; null for none.
    #[schema(required)]
    expiry_slot: Option<u64>,
    /// Unix time from which its pools swap, seconds. A transaction that lands before fails with the exchange's error 6000; one for a
    /// pool that was named may be built before, as of its opening.
    open_time: u64,
    /// Compute units of this instruction alone.
    compute_unit_limit: u32,
    token_accounts: TokenAccounts,
    /// Price and limit for a transaction of all these instructions and `computeUnitHeadroom`.
    compute_budget_instructions: Vec<ReadyInstruction>,
    /// What comes before the swap: absent token accounts are created, SOL is wrapped, a platform's fee is paid.
    setup_instructions: Vec<ReadyInstruction>,
    /// What comes after it: what the set-up created for this swap alone is unwrapped and closed.
    cleanup_instructions: Vec<ReadyInstruction>,
    /// The limit in `computeBudgetInstructions`.
    transaction_compute_unit_limit: u32,
    /// The price in `computeBudgetInstructions`: under that limit the fee never exceeds `priorityFeeLamports`.
    compute_unit_price_micro_lamports: u64,
    compute_unit_price_micro_lamports_string: Digits,
    /// What becomes of SOL that comes out with the clean-up: null when none does, or wrapping was not asked for.
    #[schema(required)]
    sol_output: Option<SolOutputView>,
    /// What a transaction of all these instructions costs.
    costs: CostsView,
    /// A recent blockhash.
    blockhash: String,
    /// Last block height at which a transaction with it can land; from the same fetch.
    last_valid_block_height: u64,
}

/// An instruction beside the swap.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ReadyInstruction {
    /// What it is for.
    name: &'static str,
    program_id: Address,
    keys: Vec<Key>,
    data: Vec<u8>,
}

impl From<&PlannedInstruction> for ReadyInstruction {
    fn from(planned: &PlannedInstruction) -> Self {
        let instruction = &planned.instruction;
        Self {
            name: planned.name,
            program_id: Address::new(&instruction.program_id),
            keys: instruction.accounts.iter().map(Key::from).collect(),
            data: instruction.data.clone(),
        }
    }
}

fn ready(planned: &[PlannedInstruction]) -> Vec<ReadyInstruction> {
    planned.iter().map(ReadyInstruction::from).collect()
}

/// An instruction on the wire.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WireInstruction {
    /// JSON text of the list that `keys` holds.
    accounts: String,
    data: Vec<u8>,
    program_id: Address,
}

/// One account of an instruction.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Key {
    pubkey: Address,
    is_signer: bool,
    is_writable: bool,
}

/// The token accounts, which must exist when the instruction runs.
#[derive(Debug, Serialize, ToSchema)]
struct TokenAccounts {
    input: TokenAccountView,
    /// Only of two hops: the user's, between them. What it holds before stays in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    middle: Option<TokenAccountView>,
    output: TokenAccountView,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TokenAccountView {
    address: Address,
    mint: Address,
    token_program: Address,
}

impl InstructionResponse {
    /// The answer for an instruction.
    ///
    /// # Errors
    /// None that is known: the list of accounts has a JSON text.
    pub(in crate::routes::swap) fn new(
        executable: ExecutableSwap,
        apart: ApartSwap,
        latest: LatestBlockhash,
        fee_payer: &Pubkey,
    ) -> Result<Self, ApiError> {
        let instruction = apart.parts.swap.instruction;
        let share = executable.platform_share;
        let (taken, arrives) = (share.map(|fee| fee.amount), share.map(|fee| fee.received));
        let keys: Vec<Key> = instruction.accounts.iter().map(Key::from).collect();
        let (first, last) = (executable.route.first(), executable.route.last());
        let middle = executable.middle.map(|_| TokenAccountView::input(last));
        Ok(Self {
            instruction: WireInstruction {
                accounts: serde_json::to_string(&keys)
                    .map_err(|error| ApiError::Internal(error.into()))?,
                data: instruction.data,
                program_id: Address::new(&instruction.program_id),
            },
            keys,
            expected_in: executable.expected_in,
            expected_in_string: executable.expected_in.map(Digits),
            platform_fee: taken,
            platform_fee_string: taken.map(Digits),
            platform_fee_received: arrives,
            platform_fee_received_string: arrives.map(Digits),
            expiry_slot: executable.terms.expiry_slot,
            open_time: executable.open_time,
            compute_unit_limit: apart.parts.swap.units,
            compute_budget_instructions: ready(&apart.budget),
            setup_instructions: ready(&apart.parts.set_up),
            cleanup_instructions: ready(&apart.parts.clean_up),
            transaction_compute_unit_limit: apart.unit_limit,
            compute_unit_price_micro_lamports: apart.unit_price,
            compute_unit_price_micro_lamports_string: Digits(apart.unit_price),
            sol_output: apart.sol_output.map(SolOutputView::from),
            costs: CostsView::new(&apart.costs, fee_payer),
            blockhash: latest.blockhash.to_string(),
            last_valid_block_height: latest.last_valid_block_height,
            token_accounts: TokenAccounts {
                input: TokenAccountView::input(first),
                middle,
                output: TokenAccountView {
                    address: Address::new(&last.output_token_account),
                    mint: Address::new(&last.output_mint),
                    token_program: Address::new(&last.output_token_program),
                },
            },
            amounts: Amounts::from(&executable.quote),
            quote: executable.quote,
        })
    }
}

impl TokenAccountView {
    fn input(swap: &SwapAccounts) -> Self {
        Self {
            address: Address::new(&swap.input_token_account),
            mint: Address::new(&swap.input_mint),
            token_program: Address::new(&swap.input_token_program),
        }
    }
}

impl From<&AccountMeta> for Key {
    fn from(meta: &AccountMeta) -> Self {
        Self {
            pubkey: Address::new(&meta.pubkey),
            is_signer: meta.is_signer,
            is_writable: meta.is_writable,
        }
    }
}

//! Answers of the two swap endpoints: transaction with manifest and costs, or bare instruction.

use axum::body::Bytes;
use cpmm::instruction::SwapAccounts;
use serde::Serialize;
use sluice_transaction::{
    AccountCreation, ApartSwap, PlannedInstruction, SolOutput, TransactionPlan,
    UnsignedTransaction, costs::Costs,
};
use solana_instruction::AccountMeta;
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use super::{executable::ExecutableSwap, simulated::SimulationView};
use crate::{
    answer,
    error::ApiError,
    extract::{Address, Digits},
    routes::quote::{Amounts, Quote},
    rpc::LatestBlockhash,
};

/// The transaction, and beside it what it does and costs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransactionResponse {
    /// Base64 of the transaction, with an empty place for each signature: the fee payer's first, then the user's. They
    /// stand before the message, in version 1 after it.
    transaction: String,
    /// Its blockhash: a recent one, or the value of `nonceAccount`.
    blockhash: String,
    /// Last block height at which it can land; from the same fetch as the blockhash. Null with `nonceAccount`: it can land until
    /// the nonce is advanced.
    #[schema(required)]
    last_valid_block_height: Option<u64>,
    /// Last slot in which the guard lets the swap execute; null for none of its own.
    #[schema(required)]
    expiry_slot: Option<u64>,
    /// Unix time from which its pools swap, seconds. A transaction that lands before fails with the exchange's error 6000; one for a
    /// pool that was named may be built before, as of its opening.
    open_time: u64,
    /// `computeUnits.learned` and `computeUnits.headroom`.
    compute_unit_limit: u32,
    /// Of version 1, which asks for a priority fee instead: what that comes to, rounded down.
    compute_unit_price_micro_lamports: u64,
    compute_unit_price_micro_lamports_string: Digits,
    compute_units: ComputeUnitsView,
    /// The most bytes that all its accounts may have together, by `setLoadedAccountsDataSizeLimit`, of version 1 in the message:
    /// what the swap may load, and two MiB for what others append. Null where there is no room for that instruction.
    #[schema(required)]
    loaded_accounts_data_size_limit: Option<u32>,
    /// The service's address lookup table, by which the transaction names accounts; null where it names them all itself. Who
    /// checks the message reads the table from the chain.
    #[schema(required)]
    lookup_table: Option<Address>,
    /// Length of the transaction, bytes; the network carries at most 1,232, of version 1 4,096.
    size: usize,
    /// The quote as it is executed: what the pool pays now, and the minimum that the guard enforces.
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
    /// What becomes of SOL that comes out: null when none does, or wrapping was not asked for.
    #[schema(required)]
    sol_output: Option<SolOutputView>,
    costs: CostsView,
    /// Everything that the user signs, in its order.
    instructions: Vec<ManifestEntry>,
    /// Only with `simulate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulation: Option<SimulationView>,
}

/// Room for an answer, bytes: the transaction at its longest in base64, and its manifest. A longer one grows.
const ROOM: usize = 8 * 1024;

/// What the compute unit limit consists of.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ComputeUnits)]
struct ComputeUnitsView {
    /// What the transaction uses by the figures that Sluice was released with.
    model: u32,
    /// The most that it uses by what the exchange's swaps on the chain have shown since.
    learned: u32,
    /// How many swaps of the same kind that rests on: of two hops, of the kind that was seen less often. None yet: `learned`
    /// has a margin of 6 % over the exchange's part.
    samples: u32,
    /// What was added for what a wallet appends: `computeUnitHeadroom`.
    headroom: u32,
}

/// What becomes of SOL that comes out.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum SolOutputView {
    /// Native SOL arrives: exactly what was received.
    Unwrapped,
    /// Native SOL arrives, and with it the rent of the account it was in, which the fee payer had paid: on a cluster whose
    /// token program has no `unwrapLamports`.
    UnwrappedWithRent,
    /// It stays wrapped in `destinationTokenAccount`.
    LeftWrapped,
}

/// What the transaction takes from its wallets, lamports.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CostsView {
    /// The wallet that pays both fees and every rent.
    fee_payer: Address,
    base_fee_lamports: u64,
    base_fee_lamports_string: Digits,
    /// What is charged for priority: at most `priorityFeeLamports`.
    priority_fee_lamports: u64,
    priority_fee_lamports_string: Digits,
    /// Every account that is created.
    rent: Vec<RentView>,
    /// Native SOL of the user that is wrapped for the swap. Of an exact output the rest is unwrapped again.
    wrapped_lamports: u64,
    wrapped_lamports_string: Digits,
    /// With this much the transaction cannot fail for lack of the fee payer's lamports: all that it pays, and the rent that
    /// exempts the wallet itself, below which the chain lets no wallet fall.
    required_lamports: u64,
    required_lamports_string: Digits,
    /// With this much it cannot fail for lack of the user's, where another wallet is the fee payer.
    required_of_user_lamports: u64,
    required_of_user_lamports_string: Digits,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RentView {
    account: Address,
    mint: Address,
    /// The wallet that owns the account.
    owner: Address,
    lamports: u64,
    lamports_string: Digits,
    /// Whether the same transaction closes the account and gives the rent back to the fee payer. Otherwise its owner gets
    /// it by closing the account: so it is with every account that receives tokens, and with the middle one where its
    /// mint withholds transfer fees, which the token program makes it keep.
    comes_back: bool,
    /// The wallet that gets the rent where the same transaction closes the account: the fee payer, or on a cluster whose
    /// token program cannot part SOL from rent the one that gets the SOL; null where the account stays.
    #[schema(required)]
    rent_to: Option<Address>,
}

/// One instruction of a transaction.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ManifestEntry {
    /// What it is for.
    name: &'static str,
    program: Address,
    accounts: Vec<ManifestAccount>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ManifestAccount {
    /// What the instruction takes it for.
    role: &'static str,
    pubkey: Address,
    is_signer: bool,
    is_writable: bool,
}

impl TransactionResponse {
    /// Its JSON text.
    ///
    /// # Errors
    /// As [`answer::text`].
    pub(super) fn text(&self) -> Result<Bytes, ApiError> {
        answer::text(self, ROOM)
    }

    /// The answer for an unsigned transaction, encoded as `transaction`.
    pub(super) fn new(
        transaction: String,
        latest: LatestBlockhash,
        executable: ExecutableSwap,
        unsigned: UnsignedTransaction,
        plan: &TransactionPlan,
        simulation: Option<SimulationView>,
    ) -> Self {
        let last_valid_block_height = plan
            .nonce
            .is_none()
            .then_some(latest.last_valid_block_height);
        let share = executable.platform_share;
        let (taken, arrives) = (share.map(|fee| fee.amount), share.map(|fee| fee.received));
        Self {
            transaction,
            blockhash: unsigned.blockhash.to_string(),
            last_valid_block_height,
            expiry_slot: executable.terms.expiry_slot,
            open_time: executable.open_time,
            compute_unit_limit: unsigned.unit_limit,
            compute_unit_price_micro_lamports: unsigned.unit_price,
            compute_unit_price_micro_lamports_string: Digits(unsigned.unit_price),
            compute_units: ComputeUnitsView {
                model: unsigned.modelled_units,
                learned: unsigned.planned_units,
                samples: executable.units.samples,
                headroom: unsigned.unit_limit.saturating_sub(unsigned.planned_units),
            },
            loaded_accounts_data_size_limit: unsigned.loaded_bytes,
            lookup_table: unsigned.lookup_table.as_ref().map(Address::new),
            size: unsigned.bytes.len(),
            amounts: Amounts::from(&executable.quote),
            quote: executable.quote,
            expected_in: executable.expected_in,
            expected_in_string: executable.expected_in.map(Digits),
            platform_fee: taken,
            platform_fee_string: taken.map(Digits),
            platform_fee_received: arrives,
            platform_fee_received_string: arrives.map(Digits),
            sol_output: unsigned.sol_output.map(SolOutputView::from),
            costs: CostsView::new(&unsigned.costs, &plan.fee_payer),
            instructions: unsigned
                .instructions
                .iter()
                .map(ManifestEntry::from)
                .collect(),
            simulation,
        }
    }
}

impl From<SolOutput> for SolOutputView {
    fn from(output: SolOutput) -> Self {
        match output {
            SolOutput::Unwrapped => Self::Unwrapped,
            SolOutput::UnwrappedWithRent => Self::UnwrappedWithRent,
            SolOutput::LeftWrapped => Self::LeftWrapped,
        }
    }
}

impl CostsView {
    fn new(costs: &Costs, fee_payer: &Pubkey) -> Self {
        Self {
            fee_payer: Address::new(fee_payer),
            base_fee_lamports: costs.base_fee,
            base_fee_lamports_string: Digits(costs.base_fee),
            priority_fee_lamports: costs.priority_fee,
            priority_fee_lamports_string: Digits(costs.priority_fee),
            rent: costs
                .created
                .iter()
                .map(|creation| RentView::new(creation, fee_payer))
                .collect(),
            wrapped_lamports: costs.wrapped,
            wrapped_lamports_string: Digits(costs.wrapped),
            required_lamports: costs.required,
            required_lamports_string: Digits(costs.required),
            required_of_user_lamports: costs.required_of_user,
            required_of_user_lamports_string: Digits(costs.required_of_user),
        }
    }
}

impl RentView {
    fn new(creation: &AccountCreation, fee_payer: &Pubkey) -> Self {
        Self {
            account: Address::new(&creation.account),
            mint: Address::new(&creation.mint),
            owner: Address::new(&creation.owner),
            lamports: creation.rent,
            lamports_string: Digits(creation.rent),
            comes_back: creation.rent_to == Some(*fee_payer),
            rent_to: creation.rent_to.as_ref().map(Address::new),
        }
    }
}

impl From<&PlannedInstruction> for ManifestEntry {
    fn from(planned: &PlannedInstruction) -> Self {
        let accounts = planned.instruction.accounts.iter().zip(planned.roles);
        Self {
            name: planned.name,
            program: Address::new(&planned.instruction.program_id),
            accounts: accounts
                .map(|(meta, role)| ManifestAccount {
                    role,
                    pubkey: Address::new(&meta.pubkey),
                    is_signer: meta.is_signer,
                    is_writable: meta.is_writable,
                })
                .collect(),
        }
    }
}

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
    pub(super) fn new(
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

//! Answer with a transaction: its bytes, every instruction of it, and what it costs.

use axum::body::Bytes;
use serde::Serialize;
use sluice_transaction::{PlannedInstruction, TransactionPlan, UnsignedTransaction};
use utoipa::ToSchema;

use super::{
    super::{executable::ExecutableSwap, simulated::SimulationView},
    CostsView, SolOutputView,
};
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
    pub(in crate::routes::swap) fn text(&self) -> Result<Bytes, ApiError> {
        answer::text(self, ROOM)
    }

    /// The answer for an unsigned transaction, encoded as `transaction`.
    pub(in crate::routes::swap) fn new(
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

//! Budget: what a transaction is charged for signatures and priority, whatever its instructions do (pure).

use solana_message::VersionedMessage;
use solana_pubkey::{Pubkey, pubkey};

use super::meaning::Meaning;
use crate::{compute_budget::priority_fee, costs::BASE_FEE, version::TransactionVersion};

/// Units that an instruction is granted where the transaction states no limit. A program of the chain itself is granted less, so this
/// is the most.
const GRANTED_UNITS: u32 = 200_000;

/// Most units of a transaction.
const MOST_UNITS: u32 = 1_400_000;

/// Programs of the chain that verify signatures in their data, each of which costs as much as one of the transaction.
const PRECOMPILES: [Pubkey; 3] = [
    pubkey!("Ed25519SigVerify111111111111111111111111111"),
    pubkey!("KeccakSecp256k11111111111111111111111111111"),
    pubkey!("Secp256r1SigVerify1111111111111111111111111"),
];

/// What a transaction is charged, lamports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedCosts {
    /// For its signatures.
    pub base_fee: u64,
    /// The most for priority.
    pub priority_fee: u64,
    /// Its compute unit limit; `None` where it states none.
    pub unit_limit: Option<u32>,
}

/// What the instructions state of the budget.
pub(super) struct Budget {
    signatures: u64,
    instructions: u32,
    unit_limit: Option<u32>,
    unit_price: u64,
    /// Of version 1, which asks for a fee instead of a price.
    priority_fee: u64,
}

impl Budget {
    /// What the message states itself.
    pub fn of(message: &VersionedMessage) -> Self {
        let (unit_limit, fee) = match message {
            VersionedMessage::V1(message) => {
                let config = &message.config;
                (config.compute_unit_limit, config.priority_fee)
            }
            VersionedMessage::Legacy(_) | VersionedMessage::V0(_) => (None, None),
        };
        Self {
            signatures: u64::from(message.header().num_required_signatures),
            instructions: 0,
            unit_limit,
            unit_price: 0,
            priority_fee: fee.unwrap_or(0),
        }
    }

    /// Counts an instruction.
    pub fn count(&mut self, program: &Pubkey, data: &[u8]) {
        if *program != solana_compute_budget_interface::ID {
            self.instructions = self.instructions.saturating_add(1);
        }
        if PRECOMPILES.contains(program) {
            let verified = data.first().copied().unwrap_or(0);
            self.signatures = self.signatures.saturating_add(u64::from(verified));
        }
        match (*program == solana_compute_budget_interface::ID).then(|| Stated::read(data)) {
            Some(Some(Stated::UnitLimit(limit))) => self.unit_limit = Some(limit),
            Some(Some(Stated::UnitPrice(price))) => self.unit_price = price,
            _ => {}
        }
    }

    /// What it comes to. Of version 1 instructions of the compute budget change nothing.
    pub fn costs(&self, version: TransactionVersion) -> StatedCosts {
        let granted = self.instructions.saturating_mul(GRANTED_UNITS);
        let limit = self.unit_limit.unwrap_or(granted).min(MOST_UNITS);
        let priority_fee = if version.has_budget_instructions() {
            priority_fee(self.unit_price, limit)
        } else {
            self.priority_fee
        };
        StatedCosts {
            base_fee: self.signatures.saturating_mul(BASE_FEE),
            priority_fee,
            unit_limit: self.unit_limit,
        }
    }
}

/// An instruction of the compute budget.
enum Stated {
    HeapBytes(u32),
    UnitLimit(u32),
    UnitPrice(u64),
    LoadedBytes(u32),
}

impl Stated {
    fn read(data: &[u8]) -> Option<Self> {
        let (&kind, rest) = data.split_first()?;
        let four = || rest.first_chunk::<4>().copied().map(u32::from_le_bytes);
        Some(match kind {
            1 => Self::HeapBytes(four()?),
            2 => Self::UnitLimit(four()?),
            3 => Self::UnitPrice(u64::from_le_bytes(*rest.first_chunk::<8>()?)),
            4 => Self::LoadedBytes(four()?),
            _ => return None,
        })
    }
}

/// The meaning of an instruction of the compute budget.
pub(super) fn meaning(data: &[u8]) -> Option<Meaning> {
    Some(match Stated::read(data)? {
        Stated::HeapBytes(bytes) => {
            let says = format!("asks for {bytes} bytes of memory for each program");
            Meaning::new("requestHeapFrame", &[], says).with("bytes", bytes)
        }
        Stated::UnitLimit(units) => {
            let says = format!("limits the transaction to {units} compute units");
            Meaning::new("setComputeUnitLimit", &[], says).with("units", units)
        }
        Stated::UnitPrice(price) => {
            let says = format!(
                "offers {price} millionths of a lamport for each compute unit of the limit"
            );
            Meaning::new("setComputeUnitPrice", &[], says).with("microLamports", price)
        }
        Stated::LoadedBytes(bytes) => {
            let says = format!("limits what all accounts may have together to {bytes} bytes");
            Meaning::new("setLoadedAccountsDataSizeLimit", &[], says).with("bytes", bytes)
        }
    })
}

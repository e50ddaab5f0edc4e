//! Unsigned transaction: its wire bytes, its instructions, and what it costs.

use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_message::{CompileError, Message, VersionedMessage, v0, v1};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use crate::{
    costs::Costs,
    lookup_table::{LEAST_LOOKUPS, LookupTable},
    planned_instruction::PlannedInstruction,
    version::TransactionVersion,
};

/// What happens to the SOL that a swap pays out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolOutput {
    /// Native SOL arrives: exactly what was received.
    Unwrapped,
    /// Native SOL arrives, and with it the rent of the account that it was in, which another wallet had paid.
    UnwrappedWithRent,
    /// It stays wrapped in the account that the user named.
    LeftWrapped,
}

/// An unsigned transaction, and what it costs to run.
#[derive(Clone, Debug)]
pub struct UnsignedTransaction {
    /// Wire bytes, with an empty place for the user's signature.
    pub bytes: Vec<u8>,
    /// The lookup table that it names accounts by, if it does.
    pub lookup_table: Option<Pubkey>,
    /// Its recent blockhash, or the value of a nonce in its place.
    pub blockhash: Hash,
    /// The instructions in it.
    pub instructions: Vec<PlannedInstruction>,
    /// The compute units that its instructions use, where the exchange's are those of its profile.
    pub modelled_units: u32,
    /// The most that its instructions use, where the exchange's are what the chain has shown.
    pub planned_units: u32,
    /// Compute unit limit: those, and the headroom.
    pub unit_limit: u32,
    /// The most bytes that its accounts may have together; `None` where it asks for no limit.
    pub loaded_bytes: Option<u32>,
    /// Price of a compute unit, micro-lamports: of version 1 what the priority fee comes to, rounded down.
    pub unit_price: u64,
    /// What it costs the wallet.
    pub costs: Costs,
    /// What happens to SOL that comes out; `None` when none does or wrapping is not asked for.
    pub sol_output: Option<SolOutput>,
}

impl UnsignedTransaction {
    /// The addresses that it holds itself, in the order by which the chain counts its accounts.
    #[must_use]
    pub fn addresses(&self) -> Vec<Pubkey> {
        let parsed = wincode::deserialize_exact::<VersionedTransaction>(&self.bytes);
        let transaction = parsed.expect("what was written here is read here");
        transaction.message.static_account_keys().to_vec()
    }
}

/// What version 1 asks for in the message itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageBudget {
    /// Compute unit limit.
    pub unit_limit: u32,
    /// Priority fee, lamports.
    pub priority_fee: u64,
    /// Bytes of accounts that may be loaded: left out, version 1 may load nothing.
    pub loaded_bytes: u32,
}

/// How a message is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format<'a> {
    /// Its wire format.
    pub version: TransactionVersion,
    /// The table that version 0 may name accounts by.
    pub lookup_table: Option<&'a LookupTable>,
}

/// The wire bytes of a transaction, and the lookup table that they name.
pub(crate) struct Compiled {
    pub bytes: Vec<u8>,
    pub lookup_table: Option<Pubkey>,
}

/// The transaction paid for by `payer`, with empty signatures.
///
/// # Errors
/// When the accounts do not fit a message.
pub(crate) fn compile(
    payer: &Pubkey,
    planned: &[PlannedInstruction],
    format: Format<'_>,
    budget: MessageBudget,
    blockhash: Hash,
) -> Result<Compiled, CompileError> {
    let instructions: Vec<Instruction> = planned
        .iter()
        .map(|planned| planned.instruction.clone())
        .collect();
    let mut lookup_table = None;
    let message = match format.version {
        TransactionVersion::Legacy => {
            let message = Message::new_with_blockhash(&instructions, Some(payer), &blockhash);
            VersionedMessage::Legacy(message)
        }
        TransactionVersion::V0 => {
            let message = compile_v0(payer, &instructions, format.lookup_table, blockhash)?;
            lookup_table = message
                .address_table_lookups
                .first()
                .map(|table| table.account_key);
            VersionedMessage::V0(message)
        }
        TransactionVersion::V1 => {
            let config = v1::TransactionConfig::empty()
                .with_compute_unit_limit(budget.unit_limit)
                .with_priority_fee(budget.priority_fee)
                .with_loaded_accounts_data_size_limit(budget.loaded_bytes);
            let message =
                v1::Message::try_compile_with_config(payer, &instructions, blockhash, config)?;
            VersionedMessage::V1(message)
        }
    };
    let signatures = usize::from(message.header().num_required_signatures);
    let transaction = VersionedTransaction {
        signatures: vec![Signature::default(); signatures],
        message,
    };
    Ok(Compiled {
        bytes: wincode::serialize(&transaction).expect("a transaction in memory has a wire form"),
        lookup_table,
    })
}

/// The message with the table where that makes it smaller.
fn compile_v0(
    payer: &Pubkey,
    instructions: &[Instruction],
    table: Option<&LookupTable>,
    blockhash: Hash,
) -> Result<v0::Message, CompileError> {
    if let Some(table) = table {
        let tables = std::slice::from_ref(&table.account);
        let message = v0::Message::try_compile(payer, instructions, tables, blockhash)?;
        let lookups = message.address_table_lookups.iter();
        let count: usize = lookups
            .map(|table| {
                table
                    .writable_indexes
                    .len()
                    .saturating_add(table.readonly_indexes.len())
            })
            .sum();
        if count >= LEAST_LOOKUPS {
            return Ok(message);
        }
    }
    v0::Message::try_compile(payer, instructions, &[], blockhash)
}

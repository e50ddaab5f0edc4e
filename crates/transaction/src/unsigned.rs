//! Unsigned transaction: its wire bytes, its instructions, and what it costs.

use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_message::{CompileError, Message, VersionedMessage, v0};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use crate::{costs::Costs, planned_instruction::PlannedInstruction};

/// What happens to the SOL that a swap pays out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolOutput {
    /// Native SOL arrives: exactly what was received.
    Unwrapped,
    /// It stays wrapped in the account that the user named.
    LeftWrapped,
}

/// An unsigned transaction, and what it costs to run.
#[derive(Clone, Debug)]
pub struct UnsignedTransaction {
    /// Wire bytes, with an empty place for the user's signature.
    pub bytes: Vec<u8>,
    /// The instructions in it.
    pub instructions: Vec<PlannedInstruction>,
    /// The most compute units that its instructions use.
    pub planned_units: u32,
    /// Compute unit limit: those, and the headroom.
    pub unit_limit: u32,
    /// Price of a compute unit, micro-lamports.
    pub unit_price: u64,
    /// What it costs the wallet.
    pub costs: Costs,
    /// What happens to SOL that comes out; `None` when none does or wrapping is not asked for.
    pub sol_output: Option<SolOutput>,
}

/// The wire bytes of a transaction paid for by `payer`, with empty signatures; of the legacy format or version 0.
///
/// # Errors
/// When the accounts do not fit a message.
pub(crate) fn compile(
    payer: &Pubkey,
    planned: &[PlannedInstruction],
    legacy: bool,
    blockhash: Hash,
) -> Result<Vec<u8>, CompileError> {
    let instructions: Vec<Instruction> = planned
        .iter()
        .map(|planned| planned.instruction.clone())
        .collect();
    let message = if legacy {
        let message = Message::new_with_blockhash(&instructions, Some(payer), &blockhash);
        VersionedMessage::Legacy(message)
    } else {
        VersionedMessage::V0(v0::Message::try_compile(
            payer,
            &instructions,
            &[],
            blockhash,
        )?)
    };
    let signatures = usize::from(message.header().num_required_signatures);
    let transaction = VersionedTransaction {
        signatures: vec![Signature::default(); signatures],
        message,
    };
    Ok(wincode::serialize(&transaction).expect("a transaction in memory has a wire form"))
}

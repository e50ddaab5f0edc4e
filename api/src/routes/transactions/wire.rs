//! Status of a transaction, on the wire.

use serde::Serialize;
use sluice_chain_types::Commitment;
use sluice_transaction::Failure;
use solana_signature::Signature;
use utoipa::ToSchema;

use crate::{
    extract::{Address, Digits},
    followed::{Followed, Outcome, State},
};

/// What is known of a transaction.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransactionStatus {
    signature: String,
    status: StatusName,
    /// How many of the service's nodes have accepted it so far.
    accepted_by: u32,
    /// Last block height at which it can land; of one with a durable nonce, up to which it is sent.
    last_valid_block_height: u64,
    /// The slot that executed it; null while none has.
    #[schema(required)]
    slot: Option<u64>,
    /// How final that slot is: `processed`, `confirmed` or `finalized`; null while there is none.
    #[schema(required)]
    commitment: Option<&'static str>,
    /// What the guard's event says the user spent, smallest units; null where it did not succeed, or the logs were cut.
    #[schema(required)]
    spent: Option<u64>,
    #[schema(required)]
    spent_string: Option<Digits>,
    /// What the guard's event says was received.
    #[schema(required)]
    received: Option<u64>,
    #[schema(required)]
    received_string: Option<Digits>,
    /// Why it failed; null where it did not.
    #[schema(required)]
    error: Option<FailureView>,
}

/// What became of a transaction. One that failed says in `commitment` how final that is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransactionStatusName)]
enum StatusName {
    /// It was sent, and is sent again.
    Sent,
    /// The newest slots executed it.
    Processed,
    /// A supermajority voted for it.
    Confirmed,
    /// It cannot be undone.
    Finalized,
    /// It was executed and failed: nothing moved but the fee.
    Failed,
    /// No block has it, and none can any more: build and sign another one.
    Expired,
    /// It is not sent any more, and whether a block has it, or can, is not known here: the stream was lost meanwhile, or it
    /// lives by a durable nonce. Ask a node before another one is signed.
    Unknown,
}

/// Why a transaction failed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransactionFailure)]
pub(super) struct FailureView {
    /// Whose error it is: `guard`, `exchange`, `tokenProgram` or `other`. A code means something with its program alone.
    source: &'static str,
    /// The program that failed first; null where the logs do not say.
    #[schema(required)]
    program: Option<Address>,
    /// Its error code; null where it has none.
    #[schema(required)]
    code: Option<u32>,
    /// What its source calls that code; null where it is not known.
    #[schema(required)]
    name: Option<String>,
    message: String,
}

impl TransactionStatus {
    /// What is known of the transaction of this signature.
    pub fn new(signature: &Signature, followed: &Followed) -> Self {
        let state = followed.state();
        let execution = match &state {
            State::Executed(execution) => Some(execution),
            State::Sent | State::Expired | State::Unknown => None,
        };
        let (moved, failure) = match execution.map(|execution| &execution.outcome) {
            Some(Outcome::Succeeded(moved)) => (*moved, None),
            Some(Outcome::Failed(failure)) => (None, Some(failure)),
            None => (None, None),
        };
        let (spent, received) = moved.map(|moved| (moved.spent, moved.received)).unzip();
        Self {
            signature: signature.to_string(),
            status: StatusName::of(&state),
            accepted_by: followed.accepted_by(),
            last_valid_block_height: followed.last_valid_block_height,
            slot: execution.map(|execution| execution.slot),
            commitment: execution.map(|execution| execution.commitment.name()),
            spent,
            spent_string: spent.map(Digits),
            received,
            received_string: received.map(Digits),
            error: failure.map(FailureView::from),
        }
    }
}

impl StatusName {
    const fn of(state: &State) -> Self {
        match state {
            State::Sent => Self::Sent,
            State::Expired => Self::Expired,
            State::Unknown => Self::Unknown,
            State::Executed(execution) => match (&execution.outcome, execution.commitment) {
                (Outcome::Failed(_), _) => Self::Failed,
                (_, Commitment::Processed) => Self::Processed,
                (_, Commitment::Confirmed) => Self::Confirmed,
                (_, Commitment::Finalized) => Self::Finalized,
            },
        }
    }
}

impl From<&Failure> for FailureView {
    fn from(failure: &Failure) -> Self {
        Self {
            source: failure.raiser.name(),
            program: failure.program.as_ref().map(Address::new),
            code: failure.code,
            name: failure.name.clone(),
            message: failure.message.clone(),
        }
    }
}

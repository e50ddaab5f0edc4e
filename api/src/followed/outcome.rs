//! Outcome: what a transaction of the guard came to, read from its error and its logs (pure).

use base64::{Engine, prelude::BASE64_STANDARD};
use sluice_transaction::{Failure, compute_units::exchange_calls};
use solana_pubkey::Pubkey;
use swap_guard_interface::{PROGRAM_ID, Swapped};

/// What came of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded; by the guard's first event. `None` where the validator cut the logs.
    Succeeded(Option<Moved>),
    /// It failed, and moved nothing but the fee.
    Failed(Failure),
}

/// What the guard measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// What the input account lost, smallest units.
    pub spent: u64,
    /// What the output account gained, smallest units.
    pub received: u64,
}

impl Outcome {
    /// What a transaction with this error and these logs came to, where the exchange's program is `exchange`.
    #[must_use]
    pub fn of(error: Option<&str>, logs: &[String], exchange: &Pubkey) -> Self {
        match error {
            None => Self::Succeeded(moved(logs)),
            Some(error) => Self::Failed(Failure::of(error, logs, exchange)),
        }
    }
}

/// What the guard's first swap measured.
fn moved(logs: &[String]) -> Option<Moved> {
    let (calls, _) = exchange_calls(logs, &PROGRAM_ID);
    let event = calls.first()?.event?;
    let Swapped {
        spent, received, ..
    } = Swapped::decode(&BASE64_STANDARD.decode(event).ok()?)?;
    Some(Moved { spent, received })
}

//! Takings: accounts that a block's transactions took from a program, though no write shows it (pure).
//!
//! A server selects a write by the owner that it leaves the account with, so the write by which a program gives an account to
//! another one, with its lamports, is not sent. But only its owner can give an account away, so a transaction that does it
//! mentions the program. So an account of the program that such a transaction may write, and of which no write of it is there
//! that leaves it with the program, is either the program's no more, or was left as it was: validators report every write of a
//! transaction, and since Agave 4.2 none of an account that it did not touch. Which of the two it is a node knows.

use std::collections::HashSet;

use sluice_geyser::{AccountUpdate, TransactionUpdate};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use super::SlotEvents;

/// An account that may have left its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taking {
    /// The account.
    pub account: Pubkey,
    /// The program.
    pub last_owner: Pubkey,
    /// The last transaction that can have done it.
    pub by: Signature,
}

/// A taking that stands, and what became of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The taking.
    pub taking: Taking,
    /// The account as a node has it, of its slot or a later one.
    pub state: AccountUpdate,
}

impl Taking {
    /// With what a node says of the account, at the end of its slot or later; `None` where the account was not taken after all. One
    /// that the program has is taken for left as it was: were it back by then, the write by which it came is told.
    #[must_use]
    pub fn with_state(self, state: AccountUpdate) -> Option<Taken> {
        let is_kept = state.lamports > 0 && state.owner == self.last_owner;
        (!is_kept).then_some(Taken {
            taking: self,
            state,
        })
    }
}

/// The accounts that may have been taken in a block, in the order of their addresses. `owner_before` is the watched program that owned an
/// account before the block.
pub(super) fn find(
    events: &SlotEvents,
    owner_before: impl Fn(&Pubkey) -> Option<Pubkey>,
    is_watched: impl Fn(&Pubkey) -> bool,
) -> Vec<Taking> {
    let mut takings = Vec::new();
    let mut judged = HashSet::new();
    let done = |transaction: &&TransactionUpdate| {
        transaction.error.is_none()
            && !transaction.is_vote
            && transaction.account_keys.iter().any(&is_watched)
    };
    // The last one that can have written an account decides.
    for transaction in events.backwards().filter(done) {
        for account in transaction.writable_accounts() {
            if judged.contains(account) {
                continue;
            }
            let verdict = judge(events, transaction, account, (&owner_before, &is_watched));
            let Verdict::Taken { last_owner } = verdict else {
                if verdict == Verdict::Kept {
                    judged.insert(*account);
                }
                continue;
            };
            judged.insert(*account);
            takings.push(Taking {
                account: *account,
                last_owner,
                by: transaction.signature,
            });
        }
    }
    takings.sort_unstable_by_key(|taking| taking.account);
    takings
}

/// What a transaction that may write an account says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// No transaction took it, or a write shows it.
    Kept,
    /// This transaction did not; an earlier one may have.
    Open,
    /// This transaction may have.
    Taken { last_owner: Pubkey },
}

fn judge(
    events: &SlotEvents,
    transaction: &TransactionUpdate,
    account: &Pubkey,
    (owner_before, is_watched): (
        &impl Fn(&Pubkey) -> Option<Pubkey>,
        &impl Fn(&Pubkey) -> bool,
    ),
) -> Verdict {
    let write = events.write(account);
    let owner = match write {
        // It is closed, or another's: that is sent.
        Some(write) if write.lamports == 0 || !is_watched(&write.owner) => return Verdict::Kept,
        Some(write) => Some(write.owner),
        None => owner_before(account),
    };
    let Some(last_owner) = owner else {
        return Verdict::Kept;
    };
    let written_by = write.and_then(|write| write.txn_signature);
    if written_by == Some(transaction.signature) {
        return Verdict::Kept;
    }
    if !transaction.account_keys.contains(&last_owner) {
        return Verdict::Open;
    }
    let position = |signature| {
        let mut transactions = events.backwards();
        let writer = transactions.find(|each| each.signature == signature)?;
        Some(writer.index)
    };
    // A write of a transaction that is not there may be an earlier one.
    match written_by.and_then(position) {
        Some(at) if at > transaction.index => Verdict::Kept,
        _ => Verdict::Taken { last_owner },
    }
}

#[cfg(test)]
mod tests;

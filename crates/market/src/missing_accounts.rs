//! Missing accounts: what pools need and only an RPC call can deliver, and when to read it (pure).

use std::collections::{BTreeMap, BTreeSet};

use solana_pubkey::Pubkey;

/// Slots after which an account that did not exist is read again. A pool and its mints are created within
/// one slot, so one without the other was of a fork that was abandoned; the other fork may be
/// confirmed at any time. Each further read waits twice as long.
pub(crate) const FIRST_WAIT_SLOTS: u64 = 4;

/// Longest wait between two reads of an account that does not exist, in slots, since only a slot can bring it: half an hour where
/// they take 200 ms, an hour where they take 400.
const LONGEST_WAIT_SLOTS: u64 = 8192;

/// Accounts that pools need and that are not known.
#[derive(Default)]
pub(crate) struct MissingAccounts {
    /// Accounts of which nothing is known, or only that they do not exist.
    missing: BTreeSet<Pubkey>,
    /// Those of them that a call in flight reads.
    in_flight: BTreeSet<Pubkey>,
    /// Accounts that did not exist when they were read.
    absent: BTreeMap<Pubkey, Absent>,
}

struct Absent {
    /// Slot from which it is read again.
    retry_at: u64,
    /// Slots that the next wait takes.
    wait: u64,
}

impl MissingAccounts {
    /// A pool needs these accounts.
    pub(crate) fn add(&mut self, accounts: impl Iterator<Item = Pubkey>) {
        self.missing.extend(accounts);
    }

    /// The accounts to read at the slot `head`; each is handed out once until it is resolved. `is_known`
    /// answers whether an account has come by another way.
    pub(crate) fn take(&mut self, head: u64, is_known: impl Fn(&Pubkey) -> bool) -> Vec<Pubkey> {
        self.absent.retain(|pubkey, _| !is_known(pubkey));
        let mut due = std::mem::take(&mut self.missing);
        due.retain(|pubkey| !self.absent.contains_key(pubkey));
        let again = self
            .absent
            .iter()
            .filter(|(_, absent)| absent.retry_at <= head);
        due.extend(again.map(|(pubkey, _)| *pubkey));
        let taken: Vec<Pubkey> = due.difference(&self.in_flight).copied().collect();
        self.in_flight.extend(&taken);
        taken
    }

    /// A call has read an account, which existed at the slot `context` or did not.
    pub(crate) fn resolve(&mut self, pubkey: &Pubkey, exists: bool, context: u64) {
        self.in_flight.remove(pubkey);
        self.missing.remove(pubkey);
        if exists {
            self.absent.remove(pubkey);
            return;
        }
        let wait = self
            .absent
            .get(pubkey)
            .map_or(FIRST_WAIT_SLOTS, |before| before.wait);
        let absent = Absent {
            retry_at: context.saturating_add(wait),
            wait: wait.saturating_mul(2).min(LONGEST_WAIT_SLOTS),
        };
        self.absent.insert(*pubkey, absent);
    }

    /// The calls in flight have ended without a result.
    pub(crate) fn requeue(&mut self) {
        self.missing.append(&mut self.in_flight);
    }
}

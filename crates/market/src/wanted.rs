//! Which parts of pools only an RPC call can deliver, and when to ask for them.

use std::collections::{BTreeMap, BTreeSet};

use solana_pubkey::Pubkey;

/// Slots after which a part that did not exist is read again. A pool and its mints are opened within
/// one slot, so one without the other was of a branch that was abandoned; the other branch may be
/// joined at any time. Each further read waits twice as long.
pub(super) const FIRST_WAIT_SLOTS: u64 = 4;

/// Longest wait between two reads of a part that does not exist: about an hour.
const LONGEST_WAIT_SLOTS: u64 = 8192;

/// Parts of pools that are not known.
#[derive(Default)]
pub(super) struct Wanted {
    /// Parts of which nothing is known, or only that they do not exist.
    missing: BTreeSet<Pubkey>,
    /// Those of them that a call is under way for.
    asked: BTreeSet<Pubkey>,
    /// Parts that did not exist when they were read.
    absent: BTreeMap<Pubkey, Absent>,
}

struct Absent {
    /// Slot from which it is read again.
    again_at: u64,
    /// Slots that the next wait takes.
    wait: u64,
}

impl Wanted {
    /// A pool lacks these parts.
    pub(super) fn miss(&mut self, parts: impl Iterator<Item = Pubkey>) {
        self.missing.extend(parts);
    }

    /// The parts to ask for at `head`; each is handed out once until it is answered. `known` tells
    /// whether a part has come by another way.
    pub(super) fn take(&mut self, head: u64, known: impl Fn(&Pubkey) -> bool) -> Vec<Pubkey> {
        self.absent.retain(|part, _| !known(part));
        let mut due = std::mem::take(&mut self.missing);
        due.retain(|part| !self.absent.contains_key(part));
        let again = self
            .absent
            .iter()
            .filter(|(_, absent)| absent.again_at <= head);
        due.extend(again.map(|(part, _)| *part));
        let wanted: Vec<Pubkey> = due.difference(&self.asked).copied().collect();
        self.asked.extend(&wanted);
        wanted
    }

    /// A call has answered about a part, which existed at `context` or did not.
    pub(super) fn answered(&mut self, part: &Pubkey, exists: bool, context: u64) {
        self.asked.remove(part);
        self.missing.remove(part);
        if exists {
            self.absent.remove(part);
            return;
        }
        let wait = self
            .absent
            .get(part)
            .map_or(FIRST_WAIT_SLOTS, |before| before.wait);
        let absent = Absent {
            again_at: context.saturating_add(wait),
            wait: wait.saturating_mul(2).min(LONGEST_WAIT_SLOTS),
        };
        self.absent.insert(*part, absent);
    }

    /// The calls under way have ended without an answer.
    pub(super) fn ask_again(&mut self) {
        self.missing.append(&mut self.asked);
    }
}

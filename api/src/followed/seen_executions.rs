//! Seen executions: the guard's transactions of late, for one that had landed before it was sent here (pure).

use std::collections::{HashMap, VecDeque};

use solana_signature::Signature;

use super::outcome::Outcome;

/// The most that are remembered: more than the guard's transactions of the minute in which a blockhash lives.
const MOST_SEEN: usize = 8_192;

/// Slots that are remembered: some more than a blockhash lives for, in which not every slot has a block.
const SLOTS_SEEN: u64 = 512;

/// Blocks after the first one of a stream from which on nothing is missing: what was being executed when it began came in
/// part.
const BEGINNING: u64 = 2;

/// Blocks for which a blockhash lives, its own not counted.
pub const BLOCKHASH_LIFE: u64 = 150;

/// What the guard executed of late.
#[derive(Debug, Default)]
pub(super) struct SeenExecutions {
    /// The slots that executed a transaction, with what came of it: one, or one for each fork.
    by_signature: HashMap<Signature, Vec<(u64, Outcome)>>,
    /// All of them as they came: slot and transaction.
    order: VecDeque<(u64, Signature)>,
    /// Height above which every execution is among them.
    whole_above: Option<u64>,
    /// Height of the newest block.
    newest: u64,
}

impl SeenExecutions {
    /// What came before now may have been missed.
    pub(super) fn begin(&mut self) {
        self.whole_above = None;
    }

    /// The block of this height is frozen.
    pub(super) fn block(&mut self, height: u64) {
        self.newest = self.newest.max(height);
        let beginning = height.saturating_add(BEGINNING);
        self.whole_above.get_or_insert(beginning);
    }

    /// A slot executed a transaction; whether that was news.
    pub(super) fn executed(&mut self, signature: Signature, slot: u64, outcome: &Outcome) -> bool {
        let executions = self.by_signature.entry(signature).or_default();
        if executions.iter().any(|(known, _)| *known == slot) {
            return false;
        }
        executions.push((slot, outcome.clone()));
        self.order.push_back((slot, signature));
        while let Some((oldest, signature)) = self.order.front().copied() {
            let is_old = oldest.saturating_add(SLOTS_SEEN) < slot;
            if !is_old && self.order.len() <= MOST_SEEN {
                break;
            }
            if !is_old {
                self.whole_above = Some(self.newest);
            }
            self.order.pop_front();
            self.forget(&signature, oldest);
        }
        true
    }

    /// What this slot executed has not been executed.
    pub(super) fn undone(&mut self, slot: u64) {
        let mut order = std::mem::take(&mut self.order);
        order.retain(|(of, signature)| {
            let is_kept = *of != slot;
            if !is_kept {
                self.forget(signature, slot);
            }
            is_kept
        });
        self.order = order;
    }

    fn forget(&mut self, signature: &Signature, slot: u64) {
        if let Some(executions) = self.by_signature.get_mut(signature) {
            executions.retain(|(of, _)| *of != slot);
            if executions.is_empty() {
                self.by_signature.remove(signature);
            }
        }
    }

    /// The slots that executed a transaction, with what came of it.
    pub(super) fn of(&self, signature: &Signature) -> impl Iterator<Item = (u64, &Outcome)> {
        let seen = self.by_signature.get(signature).into_iter().flatten();
        seen.map(|(slot, outcome)| (*slot, outcome))
    }

    /// Whether every execution is among them of a transaction that can land up to this height.
    pub(super) fn is_whole_for(&self, last_valid_block_height: u64) -> bool {
        let first = last_valid_block_height.saturating_sub(BLOCKHASH_LIFE);
        self.whole_above.is_some_and(|above| above <= first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(number: u64) -> Signature {
        let mut bytes = [1; 64];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Signature::from(bytes)
    }

    fn slots(seen: &SeenExecutions, number: u64) -> Vec<u64> {
        seen.of(&signature(number)).map(|(slot, _)| slot).collect()
    }

    #[test]
    fn what_was_executed_of_late_is_known_by_its_signature_once_for_each_slot() {
        let mut seen = SeenExecutions::default();
        let outcome = Outcome::Succeeded(None);
        assert!(seen.executed(signature(1), 10, &outcome));
        assert!(!seen.executed(signature(1), 10, &outcome));
        assert!(seen.executed(signature(1), 11, &outcome));
        assert_eq!(slots(&seen, 1), [10, 11]);
        seen.undone(10);
        assert_eq!(slots(&seen, 1), [11]);
        seen.executed(signature(2), 12 + SLOTS_SEEN, &outcome);
        assert_eq!(slots(&seen, 1), [] as [u64; 0]);
        assert_eq!((seen.order.len(), seen.by_signature.len()), (1, 1));
        seen.undone(12 + SLOTS_SEEN);
        assert!(seen.order.is_empty() && seen.by_signature.is_empty());
    }

    #[test]
    fn it_is_whole_from_where_the_stream_began_or_more_were_seen_than_may_be() {
        let mut seen = SeenExecutions::default();
        assert!(!seen.is_whole_for(u64::MAX));
        seen.block(1_000);
        seen.block(1_001);
        let first = 1_000 + BEGINNING + BLOCKHASH_LIFE;
        assert!(seen.is_whole_for(first) && !seen.is_whole_for(first - 1));
        seen.block(2_000);
        for number in 0..=MOST_SEEN as u64 {
            seen.executed(signature(number), 5, &Outcome::Succeeded(None));
        }
        assert_eq!(seen.order.len(), MOST_SEEN);
        assert_eq!(seen.by_signature.len(), MOST_SEEN);
        let first = 2_000 + BLOCKHASH_LIFE;
        assert!(seen.is_whole_for(first) && !seen.is_whole_for(first - 1));
    }
}

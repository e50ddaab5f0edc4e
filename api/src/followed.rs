//! Followed transactions: what became of each that was sent, by what the stream shows (pure).
//!
//! The stream shows every transaction of the guard and every block from the moment on at which it began, in order. So a
//! block that is confirmed decides all below it: what it has is confirmed, what another fork had is undone, and what could
//! land no later than it and was not seen has expired.

mod outcome;
mod recent_blocks;
mod seen_executions;

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use sluice_chain_types::Commitment;
use solana_signature::Signature;

pub use self::{outcome::Outcome, seen_executions::BLOCKHASH_LIFE};
use self::{
    recent_blocks::{Decided, RecentBlocks},
    seen_executions::SeenExecutions,
};

/// The most that are known at once: some 30 MB. One that has ended makes room for a new one.
pub const MOST_FOLLOWED: usize = 10_000;

/// How long one that has ended is known: for who asks late.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);

/// Blocks beyond the last in which a transaction can land until a stream that is lost is not waited for any more.
const LOST_MARGIN_BLOCKS: u64 = 32;

/// Slots that are known to have executed one transaction at once, each of another fork.
const MOST_EXECUTIONS: usize = 8;

/// What is known of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It was sent, and is sent again.
    Sent,
    /// A slot executed it.
    Executed(Execution),
    /// No slot executed it, and none can any more.
    Expired,
    /// It is not sent any more, and whether a slot executed it, or one can, is not known here.
    Unknown,
}

/// A transaction in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The slot.
    pub slot: u64,
    /// How final the slot is.
    pub commitment: Commitment,
    /// What came of it.
    pub outcome: Outcome,
}

/// How one ended that no slot executed, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unexecuted {
    Expired,
    Unknown,
}

/// A signed transaction, as it is to be sent.
#[derive(Clone, Debug)]
pub struct Signed {
    /// Its first signature.
    pub signature: Signature,
    /// Its bytes, base64.
    pub transaction: Arc<str>,
    /// Last block height at which it can land, where its sender names it.
    pub last_valid_block_height: Option<u64>,
    /// Whether it lives by a durable nonce.
    pub has_nonce: bool,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Followed {
    /// Its bytes, base64.
    pub transaction: Arc<str>,
    /// Last block height at which it can land; of one with a durable nonce, until which it is sent.
    pub last_valid_block_height: u64,
    has_nonce: bool,
    /// The nodes that accepted it, a bit for each.
    accepted: u8,
    /// Those of forks that may still win.
    executions: Vec<Execution>,
    unexecuted: Option<Unexecuted>,
    /// Whether something may have been missed since it was sent.
    has_gap: bool,
    ended: Option<Instant>,
}

impl Followed {
    fn new(signed: Signed, last_valid_block_height: u64) -> Self {
        Self {
            transaction: signed.transaction,
            last_valid_block_height,
            has_nonce: signed.has_nonce,
            accepted: 0,
            executions: Vec::new(),
            unexecuted: None,
            has_gap: false,
            ended: None,
        }
    }

    /// What is known of it.
    #[must_use]
    pub fn state(&self) -> State {
        // Of two forks the one that is confirmed counts, or else the later one.
        let key = |execution: &&Execution| (execution.commitment, execution.slot);
        match (self.executions.iter().max_by_key(key), self.unexecuted) {
            (Some(execution), _) => State::Executed(execution.clone()),
            (None, Some(Unexecuted::Expired)) => State::Expired,
            (None, Some(Unexecuted::Unknown)) => State::Unknown,
            (None, None) => State::Sent,
        }
    }

    /// How many nodes have accepted it so far.
    #[must_use]
    pub const fn accepted_by(&self) -> u32 {
        self.accepted.count_ones()
    }

    /// Whether nothing more is expected of it.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether a slot executed it, of a fork that may still win.
    #[must_use]
    pub const fn is_executed(&self) -> bool {
        !self.executions.is_empty()
    }

    fn is_confirmed(&self) -> bool {
        let mut executions = self.executions.iter();
        executions.any(|execution| execution.commitment >= Commitment::Confirmed)
    }

    fn end_unexecuted(&mut self, how: Unexecuted, now: Instant) {
        self.unexecuted = Some(how);
        self.ended = Some(now);
    }
}

/// As many transactions are followed as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// All that are followed.
#[derive(Debug, Default)]
pub struct FollowedTransactions {
    by_signature: HashMap<Signature, Followed>,
    blocks: RecentBlocks,
    seen: SeenExecutions,
    finalized: Option<u64>,
    /// Whether the stream shows nothing at the moment.
    is_blind: bool,
    changed: Vec<Signature>,
}

impl FollowedTransactions {
    /// Follows one from now on, as the nodes are at `height`. One that is followed already stays as it is.
    ///
    /// # Errors
    /// When there is no room.
    pub fn follow(&mut self, signed: Signed, height: u64, now: Instant) -> Result<(), Full> {
        let signature = signed.signature;
        if self.by_signature.contains_key(&signature) {
            return Ok(());
        }
        if self.by_signature.len() >= MOST_FOLLOWED {
            let all = self.by_signature.iter();
            let ended = all.filter_map(|(key, one)| Some((one.ended?, *key)));
            let (_, oldest) = ended.min_by_key(|(at, _)| *at).ok_or(Full)?;
            self.by_signature.remove(&oldest);
        }
        let newest = height.saturating_add(BLOCKHASH_LIFE);
        let asked = signed.last_valid_block_height;
        // One of which the sender does not name it may be of any blockhash that is alive.
        let has_gap = !self.seen.is_whole_for(asked.unwrap_or(height));
        let last = asked.map_or(newest, |asked| asked.min(newest));
        let mut followed = Followed::new(signed, last);
        followed.has_gap = has_gap;
        for (slot, outcome) in self.seen.of(&signature) {
            if let Some(commitment) = self.commitment(slot) {
                followed.executions.push(Execution {
                    slot,
                    commitment,
                    outcome: outcome.clone(),
                });
                followed.ended = (commitment == Commitment::Finalized).then_some(now);
            }
        }
        self.by_signature.insert(signature, followed);
        Ok(())
    }

    /// How final a slot is; `None` of one that was left behind.
    fn commitment(&self, slot: u64) -> Option<Commitment> {
        if self.blocks.is_confirmed(slot) {
            let is_final = self.finalized.is_some_and(|finalized| slot <= finalized);
            return Some(if is_final {
                Commitment::Finalized
            } else {
                Commitment::Confirmed
            });
        }
        let newest = self.blocks.newest_confirmed();
        newest
            .is_none_or(|newest| slot > newest)
            .then_some(Commitment::Processed)
    }

    /// A node accepted one.
    pub fn accepted(&mut self, signature: &Signature, node: u32) {
        if let Some(followed) = self.by_signature.get_mut(signature) {
            let before = followed.accepted;
            followed.accepted |= 1_u8.checked_shl(node).unwrap_or(0);
            if followed.accepted != before {
                self.changed.push(*signature);
            }
        }
    }

    /// What is known of one.
    #[must_use]
    pub fn get(&self, signature: &Signature) -> Option<&Followed> {
        self.by_signature.get(signature)
    }

    /// How many are followed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_signature.len()
    }

    /// Those of which something changed since this was last asked for; some may be named twice.
    pub fn take_changed(&mut self) -> Vec<Signature> {
        std::mem::take(&mut self.changed)
    }

    /// The stream shows everything from now on, or, where it `is_resumed`, everything since it was lost.
    pub fn begin(&mut self, is_resumed: bool) {
        self.is_blind = false;
        if !is_resumed {
            self.blocks.forget();
            self.miss();
        }
    }

    /// The stream was lost.
    pub const fn lose(&mut self) {
        self.is_blind = true;
    }

    /// Something may not have been seen.
    fn miss(&mut self) {
        self.seen.begin();
        for followed in self.by_signature.values_mut() {
            followed.has_gap |= followed.ended.is_none();
        }
    }

    /// A slot executed a transaction of the guard.
    pub fn executed(&mut self, signature: &Signature, slot: u64, outcome: Outcome, now: Instant) {
        let Some(commitment) = self.commitment(slot) else {
            return;
        };
        if !self.seen.executed(*signature, slot, &outcome) {
            return;
        }
        let Some(followed) = self.by_signature.get_mut(signature) else {
            return;
        };
        if followed.executions.len() >= MOST_EXECUTIONS {
            followed.executions.remove(0);
        }
        followed.executions.push(Execution {
            slot,
            commitment,
            outcome,
        });
        followed.unexecuted = None;
        followed.ended = (commitment == Commitment::Finalized).then_some(now);
        self.changed.push(*signature);
    }

    /// The block of a slot was frozen.
    pub fn block(&mut self, slot: u64, parent: u64, height: Option<u64>) {
        self.blocks.block(slot, parent, height);
        if let Some(height) = height {
            self.seen.block(height);
        }
    }

    /// A bank of a slot was created. Where the slot had a block before, another one takes its place.
    pub fn opened(&mut self, slot: u64) {
        if self.blocks.has_unconfirmed(slot) {
            self.undone(slot);
        }
    }

    /// A slot was given up: what it executed has not been executed.
    pub fn undone(&mut self, slot: u64) {
        if self.commitment(slot) != Some(Commitment::Processed) {
            return;
        }
        self.seen.undone(slot);
        self.keep_executions(|execution| {
            execution.slot != slot || execution.commitment > Commitment::Processed
        });
    }

    /// A slot is confirmed.
    pub fn confirmed(&mut self, slot: u64, now: Instant) {
        let Some(decided) = self.blocks.confirm(slot) else {
            return;
        };
        if decided.has_gap {
            self.miss();
        }
        for (signature, followed) in &mut self.by_signature {
            for execution in &mut followed.executions {
                if execution.commitment == Commitment::Processed
                    && decided.confirmed.contains(&execution.slot)
                {
                    execution.commitment = Commitment::Confirmed;
                    self.changed.push(*signature);
                }
            }
        }
        self.keep_executions(|execution| {
            execution.commitment > Commitment::Processed
                || !(decided.from..=slot).contains(&execution.slot)
        });
        self.expire(&decided, now);
    }

    /// A slot is finalized, and with it all that is confirmed up to it.
    pub fn finalized(&mut self, slot: u64, now: Instant) {
        self.confirmed(slot, now);
        self.finalized = self.finalized.max(Some(slot));
        for (signature, followed) in &mut self.by_signature {
            for execution in &mut followed.executions {
                if execution.commitment == Commitment::Confirmed && execution.slot <= slot {
                    execution.commitment = Commitment::Finalized;
                    followed.ended = Some(now);
                    self.changed.push(*signature);
                }
            }
        }
    }

    fn keep_executions(&mut self, keep: impl Fn(&Execution) -> bool) {
        for (signature, followed) in &mut self.by_signature {
            let before = followed.executions.len();
            followed.executions.retain(&keep);
            if followed.executions.len() != before {
                self.changed.push(*signature);
            }
        }
    }

    /// Ends those that the confirmed block was too high for.
    fn expire(&mut self, decided: &Decided, now: Instant) {
        let Some(height) = decided.height else {
            return;
        };
        for (signature, followed) in &mut self.by_signature {
            let can_land = height <= followed.last_valid_block_height;
            if followed.ended.is_some() || !followed.executions.is_empty() || can_land {
                continue;
            }
            let is_known = !followed.has_gap && !followed.has_nonce;
            let how = if is_known {
                Unexecuted::Expired
            } else {
                Unexecuted::Unknown
            };
            followed.end_unexecuted(how, now);
            self.changed.push(*signature);
        }
    }

    /// The nodes are at this height: ends those that a lost stream would have shown by now, and forgets what ended long ago.
    pub fn pass(&mut self, height: u64, now: Instant) {
        for (signature, followed) in &mut self.by_signature {
            let last = followed.last_valid_block_height;
            let is_past = last.saturating_add(LOST_MARGIN_BLOCKS) < height;
            let is_unseen = self.is_blind || followed.has_gap;
            if is_past && is_unseen && followed.ended.is_none() && !followed.is_confirmed() {
                followed.executions.clear();
                followed.end_unexecuted(Unexecuted::Unknown, now);
                self.changed.push(*signature);
            }
        }
        self.by_signature.retain(|_, followed| {
            let ended = followed.ended;
            ended.is_none_or(|ended| now.saturating_duration_since(ended) < KEPT_FOR)
        });
    }

    /// What is to be sent again at this height: all that no supermajority voted for yet and that can still land.
    #[must_use]
    pub fn unconfirmed(&self, height: u64) -> Vec<(Signature, Arc<str>)> {
        let all = self.by_signature.iter();
        all.filter(|(_, one)| {
            one.ended.is_none() && !one.is_confirmed() && height <= one.last_valid_block_height
        })
        .map(|(signature, one)| (*signature, Arc::clone(&one.transaction)))
        .collect()
    }
}

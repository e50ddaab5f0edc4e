//! Live ring of one commitment: what it carries for each message of the validator (pure).

use sluice_geyser::{Body, Commitment, SlotStatus};

use super::replay::{BankKey, Blocks, Numbered};
use crate::scripted_chain::{ChainRecord, Message};

/// The ring as one subscriber reads it. Whoever reads above processed learns each message once: banks are made up of all
/// that was reported, and making them up anew at every status would take the processors of a long chain's other parts.
#[derive(Debug, Default)]
pub struct LiveRing {
    /// What was reported so far.
    blocks: Blocks,
    /// Number of the first message that `blocks` is without.
    learned: usize,
}

impl LiveRing {
    /// What the ring carries for the message of this number, which is no smaller than the one before. At processed it is the
    /// message itself. Above, content comes with the status that makes its slot confirmed or finalized, block by block, and
    /// statuses as they are.
    #[must_use]
    pub fn carried(
        &mut self,
        record: &ChainRecord,
        number: usize,
        commitment: Commitment,
    ) -> Vec<Numbered> {
        let Some((Message::Update(body), bank)) = record.reported(number..number + 1).next() else {
            return Vec::new();
        };
        let itself = (bank, body.clone());
        let reached = match commitment {
            Commitment::Processed => return vec![itself],
            Commitment::Confirmed => SlotStatus::Confirmed,
            Commitment::Finalized => SlotStatus::Finalized,
        };
        let Body::Slot(update) = body else {
            return Vec::new();
        };
        if !implies(update.status, reached) {
            return vec![itself];
        }
        self.blocks.go_on(record.reported(self.learned..number));
        self.learned = number;
        let mut carried = newly_reached(&self.blocks, update.slot, bank, reached);
        carried.push(itself);
        carried
    }
}

/// The blocks of a bank and of those below it that had not reached this status before, the oldest first.
fn newly_reached(
    blocks: &Blocks,
    slot: u64,
    bank: Option<u64>,
    reached: SlotStatus,
) -> Vec<Numbered> {
    let is_new = |key: &BankKey| {
        !blocks.has(*key, SlotStatus::Finalized)
            && (reached == SlotStatus::Finalized || !blocks.has(*key, SlotStatus::Confirmed))
    };
    let first = blocks.find(slot, bank);
    let ancestry = std::iter::successors(first, |key| blocks.parent(*key));
    let banks: Vec<BankKey> = ancestry.take_while(is_new).collect();
    let oldest_first = banks.into_iter().rev();
    oldest_first.flat_map(|key| blocks.whole(key)).collect()
}

/// Whether a slot of this status has reached that one.
fn implies(status: SlotStatus, reached: SlotStatus) -> bool {
    status == reached || (status == SlotStatus::Finalized && reached == SlotStatus::Confirmed)
}

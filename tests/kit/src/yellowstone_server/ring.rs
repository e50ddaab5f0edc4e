//! Live ring of one commitment: what it carries for each message of the validator (pure).

use sluice_geyser::{Body, Commitment, SlotStatus};

use super::replay::{BankKey, Blocks, Numbered};
use crate::scripted_chain::{ChainRecord, Message};

/// What the ring carries for the message of this number. At processed it is the message itself. Above, content comes with the
/// status that makes its slot confirmed or finalized, block by block, and statuses as they are.
#[must_use]
pub fn carried(record: &ChainRecord, number: usize, commitment: Commitment) -> Vec<Numbered> {
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
    let blocks = Blocks::after(record.reported(0..number));
    let is_new = |key: &BankKey| {
        !blocks.has(*key, SlotStatus::Finalized)
            && (reached == SlotStatus::Finalized || !blocks.has(*key, SlotStatus::Confirmed))
    };
    let first = blocks.find(update.slot, bank);
    let ancestry = std::iter::successors(first, |key| blocks.parent(*key));
    let mut banks: Vec<BankKey> = ancestry.take_while(is_new).collect();
    banks.reverse();
    let mut carried: Vec<Numbered> = banks
        .into_iter()
        .flat_map(|key| blocks.whole(key))
        .collect();
    carried.push(itself);
    carried
}

/// Whether a slot of this status has reached that one.
fn implies(status: SlotStatus, reached: SlotStatus) -> bool {
    status == reached || (status == SlotStatus::Finalized && reached == SlotStatus::Confirmed)
}

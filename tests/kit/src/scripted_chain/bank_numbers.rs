//! Bank numbers: which bank of the validator each reported message is of (pure).

use std::collections::BTreeMap;

use sluice_geyser::{Body, SlotStatus};

use super::BlockId;

/// Numbers banks in the order in which they are created, from 1 on. A block that comes back is in another bank.
#[derive(Debug, Default)]
pub struct BankNumbers {
    created: u64,
    /// The newest bank of each slot, and of each block.
    of_slots: BTreeMap<u64, u64>,
    of_blocks: BTreeMap<BlockId, u64>,
}

impl BankNumbers {
    /// The number of the bank that a message is of: the block's, or else the newest of its slot. `None` of what is of no bank.
    pub fn of(&mut self, body: &Body, block: Option<BlockId>) -> Option<u64> {
        let slot = slot_of(body);
        let status = match body {
            Body::Slot(update) => Some((update.status, update.parent)),
            _ => None,
        };
        match status {
            Some((SlotStatus::FirstShredReceived | SlotStatus::Completed, _)) => return None,
            // Each creation names the parent. One that does not is a report that came again.
            Some((SlotStatus::CreatedBank, Some(_))) => {
                self.created += 1;
                self.of_slots.insert(slot, self.created);
                self.of_blocks
                    .extend(block.map(|block| (block, self.created)));
            }
            _ => {}
        }
        let of_block = block.and_then(|block| self.of_blocks.get(&block));
        of_block.or_else(|| self.of_slots.get(&slot)).copied()
    }
}

/// The slot that an update is about.
#[must_use]
pub const fn slot_of(body: &Body) -> u64 {
    match body {
        Body::Account(update) => update.slot,
        Body::Transaction(update) => update.slot,
        Body::Slot(update) => update.slot,
        Body::BlockMeta(update) => update.slot,
    }
}

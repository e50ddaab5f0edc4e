//! Ownership: which programs owned the accounts of a block before it, on the fork that it builds on (pure).

use std::collections::{BTreeMap, HashMap};

use solana_pubkey::Pubkey;

use super::{
    Block, SlotEvents, Taken, Taking,
    known_accounts::{KnownAccounts, KnownChanges},
    takings,
};

/// Owners that accounts had before the last write of a block, where they were others, and the accounts that were taken without a
/// write that shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastOwners {
    /// The last of them first.
    of_written: HashMap<Pubkey, Vec<Pubkey>>,
    taken: Vec<Taken>,
}

impl LastOwners {
    /// Those of an account; the owner that it has now is none of them.
    #[must_use]
    pub fn of(&self, account: &Pubkey) -> &[Pubkey] {
        self.of_written.get(account).map_or(&[], Vec::as_slice)
    }

    /// With the accounts that were taken.
    #[must_use]
    pub fn with_taken(self, taken: Vec<Taken>) -> Self {
        Self { taken, ..self }
    }

    /// The accounts that were taken without a write that shows it.
    #[must_use]
    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }
}

/// What is known of the confirmed chain, and of blocks that may still leave it.
#[derive(Debug, Default)]
pub struct Ownership {
    known: KnownAccounts,
    /// The blocks that were emitted at processed and are not confirmed, by slot.
    unconfirmed: BTreeMap<u64, BlockOwners>,
}

/// What a block changed: `None` where no watched program owns the account after it.
#[derive(Debug)]
struct BlockOwners {
    parent: u64,
    owners: HashMap<Pubkey, Option<Pubkey>>,
}

impl Ownership {
    /// With what an earlier session knew of the confirmed chain.
    #[must_use]
    pub fn of(known: KnownAccounts) -> Self {
        Self {
            known,
            unconfirmed: BTreeMap::new(),
        }
    }

    /// What has changed of the confirmed chain since this was asked last.
    pub fn take_changes(&mut self) -> KnownChanges {
        self.known.take_changes()
    }

    /// How many accounts were forgotten, since this was asked last, because there were too many.
    pub const fn take_crowded_out(&mut self) -> u64 {
        self.known.take_crowded_out()
    }

    /// A program owned these accounts at the end of a confirmed slot.
    pub fn read(&mut self, program: Pubkey, slot: u64, accounts: impl IntoIterator<Item = Pubkey>) {
        self.known.read(program, slot, accounts);
    }

    /// No slot at or before this one is read again.
    pub fn finalized(&mut self, slot: u64) {
        self.known.forget_before(slot);
    }

    /// The owners that the accounts written in a block had before.
    #[must_use]
    pub fn last_owners(&self, block: &Block, events: &SlotEvents) -> LastOwners {
        let mut last_owners = LastOwners::default();
        for write in events.writes() {
            let mut owners: Vec<Pubkey> = Vec::new();
            let in_block = events.former_owners(&write.pubkey).iter().rev().copied();
            for owner in in_block.chain(self.owner_before(&write.pubkey, block)) {
                if owner != write.owner && !owners.contains(&owner) {
                    owners.push(owner);
                }
            }
            if !owners.is_empty() {
                last_owners.of_written.insert(write.pubkey, owners);
            }
        }
        last_owners
    }

    /// The accounts that were taken from a watched program in a block of which all events are known.
    #[must_use]
    pub fn takings(
        &self,
        block: &Block,
        events: &SlotEvents,
        is_watched: impl Fn(&Pubkey) -> bool,
    ) -> Vec<Taking> {
        let owner_before = |account: &Pubkey| self.owner_before(account, block);
        takings::find(events, owner_before, is_watched)
    }

    fn owner_before(&self, account: &Pubkey, block: &Block) -> Option<Pubkey> {
        let mut child = block.slot;
        let mut slot = block.parent;
        // A parent that is not below its child would be a lie, and an endless walk.
        while slot < child
            && let Some(before) = self.unconfirmed.get(&slot)
        {
            if let Some(owner) = before.owners.get(account) {
                return *owner;
            }
            (child, slot) = (slot, before.parent);
        }
        self.known.owner_before(account, block.slot)
    }

    /// Takes note of a block that may still leave the chain.
    pub fn processed(
        &mut self,
        block: &Block,
        events: &SlotEvents,
        last_owners: &LastOwners,
        is_watched: impl Fn(&Pubkey) -> bool,
    ) {
        let changed = self.unconfirmed.entry(block.slot).or_insert(BlockOwners {
            parent: block.parent,
            owners: HashMap::new(),
        });
        for write in events.writes() {
            let owner = (write.lamports > 0 && is_watched(&write.owner)).then_some(write.owner);
            if owner.is_some() || !last_owners.of(&write.pubkey).is_empty() {
                changed.owners.insert(write.pubkey, owner);
            }
        }
        for taken in last_owners.taken() {
            changed.owners.insert(taken.taking.account, None);
        }
    }

    /// A block left the chain.
    pub fn retract(&mut self, slot: u64) {
        self.unconfirmed.remove(&slot);
    }

    /// Takes note of a confirmed block. Blocks come in the order of the chain, or once more.
    pub fn confirmed(
        &mut self,
        block: &Block,
        events: &SlotEvents,
        last_owners: &LastOwners,
        is_watched: impl Fn(&Pubkey) -> bool,
    ) {
        self.unconfirmed = self.unconfirmed.split_off(&block.slot.saturating_add(1));
        for write in events.writes() {
            let owner = (write.lamports > 0 && is_watched(&write.owner)).then_some(write.owner);
            self.known.saw(write.pubkey, block.slot, owner);
        }
        for taken in last_owners.taken() {
            self.known.saw(taken.taking.account, block.slot, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::{SlotEvent, slot_events::fixtures};

    fn key(byte: u8) -> Pubkey {
        Pubkey::new_from_array([byte; 32])
    }

    fn block(slot: u64, parent: u64) -> Block {
        Block {
            slot,
            hash: slot.to_string(),
            parent,
            time: None,
        }
    }

    /// Writes of account 1 in a slot, by the owners that they leave it with; the system program's has no lamports.
    fn writes(slot: u64, owners: &[Pubkey]) -> SlotEvents {
        let mut events = SlotEvents::default();
        for (version, owner) in (1..).zip(owners) {
            let mut write = fixtures::account(slot, 1, version);
            write.owner = *owner;
            write.lamports = u64::from(*owner != Pubkey::default());
            events.add(SlotEvent::Account(write));
        }
        events
    }

    const SYSTEM: Pubkey = Pubkey::new_from_array([0; 32]);

    fn is_watched(program: &Pubkey) -> bool {
        *program == fixtures::program()
    }

    #[test]
    fn an_account_of_one_block_has_had_all_its_owners() {
        let ownership = Ownership::default();
        let owners = |list: &[Pubkey]| {
            let last = ownership.last_owners(&block(7, 6), &writes(7, list));
            last.of(&key(1)).to_vec()
        };
        let program = fixtures::program();
        assert_eq!(owners(&[program]), []);
        assert_eq!(owners(&[program, SYSTEM]), [program]);
        assert_eq!(owners(&[program, SYSTEM, key(9)]), [SYSTEM, program]);
        assert_eq!(owners(&[program, SYSTEM, program]), [SYSTEM]);
    }

    #[test]
    fn on_each_fork_the_owner_is_that_of_the_fork() {
        let program = fixtures::program();
        let mut ownership = Ownership::default();
        ownership.confirmed(
            &block(5, 4),
            &writes(5, &[program]),
            &LastOwners::default(),
            is_watched,
        );
        // One fork closes it, and the next block of that fork makes it anew for another program.
        let (closed, block_6) = (writes(6, &[SYSTEM]), block(6, 5));
        let last = ownership.last_owners(&block_6, &closed);
        assert_eq!(last.of(&key(1)), [program]);
        ownership.processed(&block_6, &closed, &last, is_watched);
        let (other, block_7) = (writes(7, &[key(9)]), block(7, 6));
        assert_eq!(
            ownership.last_owners(&block_7, &other),
            LastOwners::default()
        );
        // The other fork still has it.
        let block_8 = block(8, 5);
        let last = ownership.last_owners(&block_8, &writes(8, &[key(9)]));
        assert_eq!(last.of(&key(1)), [program]);
        // And when the first one has left the chain, so has a block on its slot.
        ownership.retract(6);
        let last = ownership.last_owners(&block_7, &other);
        assert_eq!(last.of(&key(1)), [program]);
    }

    #[test]
    fn a_confirmed_block_that_is_emitted_again_has_the_same_last_owners() {
        let program = fixtures::program();
        let mut ownership = Ownership::default();
        ownership.confirmed(
            &block(5, 4),
            &writes(5, &[program]),
            &LastOwners::default(),
            is_watched,
        );
        let (closed, block_6) = (writes(6, &[SYSTEM]), block(6, 5));
        let first = ownership.last_owners(&block_6, &closed);
        ownership.confirmed(&block_6, &closed, &first, is_watched);
        let none = LastOwners::default();
        ownership.confirmed(&block(7, 6), &writes(7, &[program]), &none, is_watched);
        assert_eq!(ownership.last_owners(&block_6, &closed), first);
    }
}

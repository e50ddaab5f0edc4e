//! Known account: an account that a watched program owns, or owned, as the confirmed chain shows it.

use std::collections::{BTreeMap, BTreeSet};

use solana_pubkey::Pubkey;

/// The time for which a program owns an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownAccount {
    /// The account.
    pub address: Pubkey,
    /// The first slot at whose end the program is known to have owned it.
    pub since_slot: u64,
    /// The program.
    pub owner: Pubkey,
    /// The slot at whose end it owned it no more; `None` while it does.
    pub left_slot: Option<u64>,
}

/// What has changed of the known accounts, by address and first slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownAccountChanges {
    pub(crate) written: BTreeMap<(Pubkey, u64), KnownAccount>,
    pub(crate) forgotten: BTreeSet<(Pubkey, u64)>,
}

impl KnownAccountChanges {
    /// One that is new, or has changed again.
    pub fn write(&mut self, known: KnownAccount) {
        let key = (known.address, known.since_slot);
        self.forgotten.remove(&key);
        self.written.insert(key, known);
    }

    /// One that is known no more, by its address and first slot.
    pub fn forget(&mut self, address: Pubkey, since_slot: u64) {
        self.written.remove(&(address, since_slot));
        self.forgotten.insert((address, since_slot));
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.forgotten.is_empty()
    }
}

//! Accounts at every slot of every fork: the confirmed head's, and one layer of writes per slot (pure).

use std::collections::BTreeMap;

use cpmm::TokenProgram;
use solana_pubkey::Pubkey;

use crate::{
    decoded_account::{ByAddress, DecodedAccount},
    shown_mints::ShownMints,
};

/// The last write to an account in a slot.
pub(crate) struct Write {
    /// Orders the writes within the slot.
    pub(crate) version: u64,
    pub(crate) account: DecodedAccount,
}

/// One slot.
#[derive(Default)]
struct Layer {
    /// The slot it builds on, once reported.
    parent: Option<u64>,
    writes: ByAddress<Write>,
}

/// Accounts at the confirmed head, those of a kind together. A table of hashes doubles when it is full, and of
/// hundreds of thousands of accounts three tables waste much less than one.
#[derive(Default)]
struct ConfirmedAccounts {
    tables: [ByAddress<DecodedAccount>; 3],
    /// Mints that no pool names yet. None of them is in a table.
    shown: ShownMints,
}

/// The table of [`ConfirmedAccounts`] that holds accounts like this one.
const fn table_of(account: &DecodedAccount) -> usize {
    match account {
        DecodedAccount::Vault(_) => 0,
        DecodedAccount::Mint(..) => 1,
        _ => 2,
    }
}

impl ConfirmedAccounts {
    fn get(&self, pubkey: &Pubkey) -> Option<&DecodedAccount> {
        let mut tables = self.tables.iter();
        let kept = tables.find_map(|table| table.get(pubkey));
        kept.or_else(|| self.shown.get(pubkey))
    }

    /// [`ConfirmedAccounts::get`], faster when the account is still of the kind of `like`, as nearly every account is.
    fn get_like(&self, pubkey: &Pubkey, like: &DecodedAccount) -> Option<&DecodedAccount> {
        let (before, from) = self.tables.split_at(table_of(like));
        let mut tables = from.iter().chain(before);
        let kept = tables.find_map(|table| table.get(pubkey));
        kept.or_else(|| self.shown.get(pubkey))
    }

    /// Replaces an account by one of the same kind. Gives it back when there is none.
    fn replace(&mut self, pubkey: &Pubkey, account: DecodedAccount) -> Result<(), DecodedAccount> {
        let table = self.tables.get_mut(table_of(&account));
        match table.and_then(|table| table.get_mut(pubkey)) {
            Some(before) => {
                *before = account;
                Ok(())
            }
            None => Err(account),
        }
    }

    /// Keeps an account, whatever was there before.
    fn insert(&mut self, pubkey: Pubkey, account: DecodedAccount) {
        let Err(account) = self.replace(&pubkey, account) else {
            return;
        };
        self.remove(&pubkey);
        if let Some(table) = self.tables.get_mut(table_of(&account)) {
            table.insert(pubkey, account);
        }
    }

    /// Forgets an account.
    fn remove(&mut self, pubkey: &Pubkey) {
        for table in &mut self.tables {
            table.remove(pubkey);
        }
        self.shown.remove(pubkey);
    }

    /// Takes in an account that no pool names: nothing is kept of it, but of a mint whose every write the stream shows.
    fn remember(&mut self, pubkey: Pubkey, account: DecodedAccount) {
        self.remove(&pubkey);
        if matches!(account, DecodedAccount::Mint(TokenProgram::Token2022, _)) {
            self.shown.insert(pubkey, account);
        }
    }
}

/// What is known of every account.
#[derive(Default)]
pub(crate) struct Accounts {
    confirmed: ConfirmedAccounts,
    layers: BTreeMap<u64, Layer>,
}

impl Accounts {
    /// An account as it is in a slot: its last write there or in the nearest slot below.
    pub(crate) fn get(&self, slot: u64, pubkey: &Pubkey) -> Option<&DecodedAccount> {
        match self.last_write(slot, pubkey) {
            Some((_, write)) => Some(&write.account),
            None => self.confirmed.get(pubkey),
        }
    }

    /// An account as it is in a slot before it becomes `now`, and the version of its last write in that
    /// very slot.
    pub(crate) fn before(
        &self,
        slot: u64,
        pubkey: &Pubkey,
        now: &DecodedAccount,
    ) -> (Option<u64>, Option<&DecodedAccount>) {
        match self.last_write(slot, pubkey) {
            Some((at, write)) => ((at == slot).then_some(write.version), Some(&write.account)),
            None => (None, self.confirmed.get_like(pubkey, now)),
        }
    }

    /// Whether a slot, or one below it down to the confirmed head, wrote an account.
    pub(crate) fn is_written(&self, slot: u64, pubkey: &Pubkey) -> bool {
        self.last_write(slot, pubkey).is_some()
    }

    /// The last write above the confirmed head that a slot sees, and the slot that made it.
    fn last_write(&self, slot: u64, pubkey: &Pubkey) -> Option<(u64, &Write)> {
        let mut at = slot;
        loop {
            let layer = self.layers.get(&at)?;
            if let Some(write) = layer.writes.get(pubkey) {
                return Some((at, write));
            }
            at = layer.parent?;
        }
    }

    /// Keeps a write.
    pub(crate) fn write(&mut self, slot: u64, pubkey: Pubkey, write: Write) {
        self.layer(slot).writes.insert(pubkey, write);
    }

    /// The layer of a slot, with room for as many writes as its neighbour has: slots are alike, and a table that
    /// grows with its writes is copied again and again.
    fn layer(&mut self, slot: u64) -> &mut Layer {
        let neighbour = self.layers.last_key_value();
        let room = neighbour.map_or(0, |(_, layer)| layer.writes.len());
        self.layers.entry(slot).or_insert_with(|| Layer {
            parent: None,
            writes: ByAddress::with_capacity_and_hasher(room, Default::default()),
        })
    }

    /// Keeps what an account is at the confirmed head and above, where nothing is known of it, or only that
    /// it was not there once.
    pub(crate) fn add(&mut self, pubkey: Pubkey, account: DecodedAccount) {
        if matches!(
            self.confirmed.get(&pubkey),
            None | Some(DecodedAccount::Absent)
        ) {
            self.confirmed.insert(pubkey, account);
        }
    }

    /// Makes room at the confirmed head for as many accounts of each kind as these are. Tables that grow leave behind, for
    /// good, what was too small for them.
    pub(crate) fn reserve<'a>(&mut self, accounts: impl Iterator<Item = &'a DecodedAccount>) {
        let mut counts = [0_usize; 3];
        for account in accounts {
            if let Some(count) = counts.get_mut(table_of(account)) {
                *count += 1;
            }
        }
        for (table, count) in self.confirmed.tables.iter_mut().zip(counts) {
            table.reserve(count);
        }
    }

    /// The writes of a slot, in no order.
    pub(crate) fn writes(&self, slot: u64) -> impl Iterator<Item = (&Pubkey, &Write)> {
        self.layers
            .get(&slot)
            .into_iter()
            .flat_map(|layer| &layer.writes)
    }

    /// Sets what a slot builds on.
    pub(crate) fn set_parent(&mut self, slot: u64, parent: u64) {
        self.layer(slot).parent = Some(parent);
    }

    /// Makes a slot the confirmed head: the writes of its ancestry join the confirmed accounts. Its own stay
    /// apart, so that replayed ones are recognised. `keep` decides whether an account that was not known, or was of
    /// another kind, is worth keeping; of those that are not, the latest mints are remembered.
    pub(crate) fn confirm(&mut self, head: u64, keep: impl Fn(&Pubkey, &DecodedAccount) -> bool) {
        let mut ancestry = Vec::new();
        let mut next = self.layers.get(&head).and_then(|layer| layer.parent);
        while let Some(slot) = next.filter(|slot| self.layers.contains_key(slot)) {
            ancestry.push(slot);
            next = self.layers.get(&slot).and_then(|layer| layer.parent);
        }
        for slot in ancestry.into_iter().rev() {
            let layer = self.layers.remove(&slot).unwrap_or_default();
            for (pubkey, Write { account, .. }) in layer.writes {
                let Err(account) = self.confirmed.replace(&pubkey, account) else {
                    continue;
                };
                if keep(&pubkey, &account) {
                    self.confirmed.insert(pubkey, account);
                } else {
                    self.confirmed.remember(pubkey, account);
                }
            }
        }
        let oldest = self.confirmed.shown.take_oldest();
        for (pubkey, mint) in oldest.into_iter().flatten() {
            // A pool may have come to name it, and only what is kept in a table stays.
            if keep(&pubkey, &mint) {
                self.confirmed.insert(pubkey, mint);
            }
        }
    }

    /// Number of accounts that are kept at the confirmed head for good.
    #[cfg(test)]
    pub(crate) fn confirmed_len(&self) -> usize {
        self.confirmed.tables.iter().map(ByAddress::len).sum()
    }

    /// Drops the writes of all slots but some.
    pub(crate) fn retain(&mut self, mut kept: impl FnMut(u64) -> bool) {
        self.layers.retain(|slot, _| kept(*slot));
    }
}

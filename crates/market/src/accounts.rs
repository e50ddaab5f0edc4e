//! What is known of every account, at every slot of every branch: the accounts at the root, and above
//! it one layer of writes for each slot.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use solana_pubkey::Pubkey;

use super::content::Content;

/// Accounts by address. The hash is fast and keyed at random: pool addresses can be chosen by whoever
/// opens a pool.
pub(super) type ByAddress<T> = HashMap<Pubkey, T, RandomState>;

/// The last write to an account in a slot.
pub(super) struct Write {
    /// Orders the writes within the slot.
    pub(super) version: u64,
    pub(super) content: Content,
}

/// One slot.
#[derive(Default)]
struct Layer {
    /// The slot it builds on, once told.
    parent: Option<u64>,
    writes: ByAddress<Write>,
}

/// Accounts at the root, those of a kind together. A table of hashes doubles when it is full, and of
/// hundreds of thousands of accounts three tables waste much less than one.
#[derive(Default)]
struct Rooted([ByAddress<Content>; 3]);

/// The table of [`Rooted`] that holds accounts like this one.
const fn table_of(content: &Content) -> usize {
    match content {
        Content::Vault(_) => 0,
        Content::Mint(..) => 1,
        _ => 2,
    }
}

impl Rooted {
    fn get(&self, pubkey: &Pubkey) -> Option<&Content> {
        self.0.iter().find_map(|table| table.get(pubkey))
    }

    /// [`Rooted::get`], faster when the account is still of the kind of `like`, as nearly every account is.
    fn get_like(&self, pubkey: &Pubkey, like: &Content) -> Option<&Content> {
        let (before, from) = self.0.split_at(table_of(like));
        let mut tables = from.iter().chain(before);
        tables.find_map(|table| table.get(pubkey))
    }

    /// Puts another content in the place of one of the same kind. Gives it back when there is none.
    fn replace(&mut self, pubkey: &Pubkey, content: Content) -> Result<(), Content> {
        let table = self.0.get_mut(table_of(&content));
        match table.and_then(|table| table.get_mut(pubkey)) {
            Some(before) => {
                *before = content;
                Ok(())
            }
            None => Err(content),
        }
    }

    /// Keeps an account, whatever was there before.
    fn insert(&mut self, pubkey: Pubkey, content: Content) {
        let Err(content) = self.replace(&pubkey, content) else {
            return;
        };
        let kind = table_of(&content);
        for (at, table) in self.0.iter_mut().enumerate() {
            if at != kind {
                table.remove(&pubkey);
            }
        }
        if let Some(table) = self.0.get_mut(kind) {
            table.insert(pubkey, content);
        }
    }
}

/// What is known of every account.
#[derive(Default)]
pub(super) struct Accounts {
    rooted: Rooted,
    layers: BTreeMap<u64, Layer>,
}

impl Accounts {
    /// An account as it is in a slot: its last write there or in the nearest slot below.
    pub(super) fn get(&self, slot: u64, pubkey: &Pubkey) -> Option<&Content> {
        match self.last_write(slot, pubkey) {
            Some((_, write)) => Some(&write.content),
            None => self.rooted.get(pubkey),
        }
    }

    /// An account as it is in a slot before it becomes `now`, and the version of its last write in that
    /// very slot.
    pub(super) fn before(
        &self,
        slot: u64,
        pubkey: &Pubkey,
        now: &Content,
    ) -> (Option<u64>, Option<&Content>) {
        match self.last_write(slot, pubkey) {
            Some((at, write)) => ((at == slot).then_some(write.version), Some(&write.content)),
            None => (None, self.rooted.get_like(pubkey, now)),
        }
    }

    /// The last write above the root that a slot sees, and the slot that made it.
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
    pub(super) fn write(&mut self, slot: u64, pubkey: Pubkey, write: Write) {
        self.layer(slot).writes.insert(pubkey, write);
    }

    /// The layer of a slot, with room for as many writes as its neighbour has: slots are alike, and a table that
    /// grows with its writes is copied again and again.
    fn layer(&mut self, slot: u64) -> &mut Layer {
        let neighbour = self.layers.last_key_value();
        let room = neighbour.map_or(0, |(_, layer)| layer.writes.len());
        self.layers.entry(slot).or_insert_with(|| Layer {
            parent: None,
            writes: ByAddress::with_capacity_and_hasher(room, RandomState::default()),
        })
    }

    /// Keeps what an account is at the root and above, where nothing is known of it, or only that it
    /// was not there once.
    pub(super) fn add(&mut self, pubkey: Pubkey, content: Content) {
        if matches!(self.rooted.get(&pubkey), None | Some(Content::Absent)) {
            self.rooted.insert(pubkey, content);
        }
    }

    /// Makes room at the root for as many accounts of each kind as these are. Tables that grow leave behind, for
    /// good, what was too small for them.
    pub(super) fn reserve<'a>(&mut self, contents: impl Iterator<Item = &'a Content>) {
        let mut counts = [0_usize; 3];
        for content in contents {
            if let Some(count) = counts.get_mut(table_of(content)) {
                *count += 1;
            }
        }
        for (table, count) in self.rooted.0.iter_mut().zip(counts) {
            table.reserve(count);
        }
    }

    /// The writes of a slot, in no order.
    pub(super) fn writes(&self, slot: u64) -> impl Iterator<Item = (&Pubkey, &Write)> {
        self.layers
            .get(&slot)
            .into_iter()
            .flat_map(|layer| &layer.writes)
    }

    /// Sets what a slot builds on.
    pub(super) fn set_parent(&mut self, slot: u64, parent: u64) {
        self.layer(slot).parent = Some(parent);
    }

    /// Makes a slot the root: the writes of the slots that it builds on become the rooted accounts.
    /// Its own stay apart, so that repeated ones are recognised. `keep` tells about an account that was
    /// not known whether it is worth keeping.
    pub(super) fn settle(&mut self, root: u64, keep: impl Fn(&Pubkey, &Content) -> bool) {
        let mut path = Vec::new();
        let mut next = self.layers.get(&root).and_then(|layer| layer.parent);
        while let Some(slot) = next.filter(|slot| self.layers.contains_key(slot)) {
            path.push(slot);
            next = self.layers.get(&slot).and_then(|layer| layer.parent);
        }
        for slot in path.into_iter().rev() {
            let layer = self.layers.remove(&slot).unwrap_or_default();
            for (pubkey, Write { content, .. }) in layer.writes {
                if let Err(content) = self.rooted.replace(&pubkey, content)
                    && (self.rooted.get(&pubkey).is_some() || keep(&pubkey, &content))
                {
                    self.rooted.insert(pubkey, content);
                }
            }
        }
    }

    /// Drops the writes of all slots but some.
    pub(super) fn retain(&mut self, mut kept: impl FnMut(u64) -> bool) {
        self.layers.retain(|slot, _| kept(*slot));
    }
}

//! Joined slot: the banks that strands gave out of one slot, and the one bank that they make together (pure).

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sluice_chain_types::SlotStatus;
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use super::StrandId;
use crate::{
    generation::Generation,
    update::{BlockMeta, Body, Update},
};

/// A slot.
#[derive(Debug, Default)]
pub(super) struct JoinedSlot {
    pub(super) banks: BTreeMap<StrandId, Bank>,
    pub(super) given: Option<Given>,
    /// Commitments above processed, with the hash of the block that the strand had given out.
    pub(super) commitments: Vec<(SlotStatus, Option<String>, Update)>,
    pub(super) committed: Vec<SlotStatus>,
    pub(super) is_dead: bool,
}

#[derive(Debug)]
pub(super) struct Given {
    pub(super) blockhash: String,
    pub(super) parent: Option<u64>,
}

/// A slot as one strand has given it out.
#[derive(Debug, Clone)]
pub(super) struct Bank {
    pub(super) parent: Option<u64>,
    pub(super) created: Update,
    pub(super) content: Vec<Update>,
    pub(super) meta: Option<Update>,
    pub(super) processed: Option<Update>,
}

impl Bank {
    pub(super) fn meta(&self) -> Option<&BlockMeta> {
        match &self.meta.as_ref()?.body {
            Body::BlockMeta(meta) => Some(meta),
            _ => None,
        }
    }

    pub(super) fn blockhash(&self) -> Option<&str> {
        self.meta().map(|meta| meta.blockhash.as_str())
    }

    /// Takes the content out; which block it was stays known.
    pub(super) fn take(&mut self) -> Self {
        let content = std::mem::take(&mut self.content);
        Self {
            content,
            ..self.clone()
        }
    }
}

impl JoinedSlot {
    /// Whether nothing is to be given out before something new comes of it.
    pub(super) fn awaits_nothing(&self) -> bool {
        let Some(given) = &self.given else {
            return self.banks.is_empty();
        };
        let is_same = |bank: &Bank| bank.blockhash() == Some(&given.blockhash);
        self.banks.values().all(is_same)
            && self
                .commitments
                .iter()
                .all(|(status, _, _)| self.committed.contains(status))
    }
}

pub(super) fn of_slot(update: &Update) -> Option<u64> {
    match &update.body {
        Body::Slot(status) => Some(status.slot),
        _ => None,
    }
}

/// One bank of those of all strands: what several of them have comes once.
pub(super) fn merged(
    banks: BTreeMap<StrandId, Bank>,
    by_address: &BTreeSet<String>,
) -> impl Iterator<Item = Update> + use<> {
    let mut executed: HashSet<Signature> = HashSet::new();
    let chosen = if banks.len() > 1 {
        chosen(&banks, by_address)
    } else {
        BTreeMap::new()
    };
    let (mut created, mut ends, mut contents) = (None, None, Vec::new());
    for (id, bank) in banks {
        created.get_or_insert(bank.created);
        ends.get_or_insert((bank.meta, bank.processed));
        contents.extend(bank.content.into_iter().map(|update| (id, update)));
    }
    let (meta, processed) = ends.unwrap_or_default();
    let content = contents
        .into_iter()
        .filter(move |(id, update)| match &update.body {
            Body::Account(account) => chosen
                .get(&account.pubkey)
                .is_none_or(|chosen| chosen == id),
            Body::Transaction(transaction) => executed.insert(transaction.signature),
            Body::Slot(_) | Body::BlockMeta(_) => true,
        });
    let content = content.map(|(_, update)| update);
    created
        .into_iter()
        .chain(content)
        .chain(meta)
        .chain(processed)
}

/// Which strand's writes of an account count. Where several have it, by its address and by its owner, the one that watches its
/// address: by its owner an account is not seen any more once it has another one. Else the one that has most of its writes: that
/// an account is closed is seen by every strand, what it was before by one.
fn chosen(
    banks: &BTreeMap<StrandId, Bank>,
    by_address: &BTreeSet<String>,
) -> BTreeMap<Pubkey, StrandId> {
    let mut chosen: BTreeMap<Pubkey, ((bool, usize), StrandId)> = BTreeMap::new();
    for (id, bank) in banks {
        let mut ranks: BTreeMap<Pubkey, (bool, usize)> = BTreeMap::new();
        for update in &bank.content {
            let Body::Account(account) = &update.body else {
                continue;
            };
            let is_address = |name: &String| by_address.contains(Generation::filter_of(name));
            let (is_certain, writes) = ranks.entry(account.pubkey).or_default();
            *is_certain |= update.filters.iter().any(is_address);
            *writes += 1;
        }
        for (pubkey, rank) in ranks {
            let best = chosen.entry(pubkey).or_insert((rank, *id));
            if rank > best.0 {
                *best = (rank, *id);
            }
        }
    }
    let chosen = chosen.into_iter();
    chosen.map(|(pubkey, (_, id))| (pubkey, id)).collect()
}

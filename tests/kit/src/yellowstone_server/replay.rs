//! Replay of the reference server: the frozen blocks that it keeps, each with what was reported of it (pure).

use std::collections::{BTreeMap, BTreeSet};

use sluice_geyser::{AccountUpdate, BlockMeta, Body, SlotStatus, SlotUpdate};
use solana_pubkey::Pubkey;

use super::{ReplayPolicy, ServerSettings};
use crate::scripted_chain::{Message, slot_of};

/// Finalized blocks that are kept however few may be.
const FINALIZED_KEPT: usize = 10;

/// How far the numbers of another validator's banks are from this one's.
const OTHER_NUMBERS: u64 = 1_000_000;

/// An update, with the number of the bank that it is of.
pub type Numbered = (Option<u64>, Body);

/// A bank: its slot, and its place among those of the slot.
pub type BankKey = (u64, usize);

/// Why there is no replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReplay {
    /// No block is kept yet.
    NotStarted,
    /// The slot is older than the first block that is kept.
    TooOld {
        /// The slot of that block.
        first: u64,
    },
}

/// One bank of a slot, as far as it was reported.
#[derive(Clone, Debug, Default)]
struct Bank {
    number: Option<u64>,
    content: Vec<Body>,
    block: Option<BlockMeta>,
    statuses: Vec<SlotUpdate>,
    /// It was given up: nothing that is reported of it later makes it a block again.
    is_dead: bool,
}

impl Bank {
    /// Whether its block is kept for replays: its metadata and a commitment were reported.
    fn is_kept(&self) -> bool {
        !self.is_dead && self.block.is_some() && !self.statuses.is_empty()
    }

    fn has(&self, status: SlotStatus) -> bool {
        self.statuses.iter().any(|update| update.status == status)
    }

    fn reached(&mut self, update: &SlotUpdate) {
        if !self.has(update.status) {
            self.statuses.push(update.clone());
        }
    }
}

/// What a server holds of the banks that were reported to it, in the order in which they were created.
#[derive(Clone, Debug, Default)]
pub struct Blocks(BTreeMap<BankKey, Bank>);

impl Blocks {
    /// The blocks after these messages.
    #[must_use]
    pub fn after<'a>(reported: impl Iterator<Item = (&'a Message, Option<u64>)>) -> Self {
        let mut blocks = Self::default();
        blocks.go_on(reported);
        blocks
    }

    /// Learns what was reported next.
    pub fn go_on<'a>(&mut self, reported: impl Iterator<Item = (&'a Message, Option<u64>)>) {
        for (message, bank) in reported {
            if let Message::Update(body) = message {
                self.learn(body, bank);
            }
        }
    }

    /// The bank of a slot with this number, or else the newest.
    #[must_use]
    pub fn find(&self, slot: u64, number: Option<u64>) -> Option<BankKey> {
        let mut banks = self.of_slot(slot).rev();
        let newest = banks.clone().next().map(|(key, _)| *key);
        let named = banks.find(|(_, bank)| number.is_some() && bank.number == number);
        named.map(|(key, _)| *key).or(newest)
    }

    fn of_slot(&self, slot: u64) -> std::collections::btree_map::Range<'_, BankKey, Bank> {
        self.0.range((slot, 0)..=(slot, usize::MAX))
    }

    fn begin(&mut self, slot: u64, number: Option<u64>) -> BankKey {
        let place = self.of_slot(slot).next_back();
        let key = (slot, place.map_or(0, |((_, place), _)| place + 1));
        let bank = Bank {
            number,
            ..Bank::default()
        };
        self.0.insert(key, bank);
        key
    }

    fn bank(&mut self, slot: u64, number: Option<u64>) -> &mut Bank {
        let key = self.find(slot, number);
        let key = key.unwrap_or_else(|| self.begin(slot, number));
        self.0.entry(key).or_default()
    }

    fn learn(&mut self, body: &Body, number: Option<u64>) {
        let slot = slot_of(body);
        match body {
            Body::Account(_) | Body::Transaction(_) => {
                self.bank(slot, number).content.push(body.clone());
            }
            Body::BlockMeta(block) => self.bank(slot, number).block = Some(block.clone()),
            Body::Slot(update) => match update.status {
                // Each creation names the parent. One that does not is a report that came again.
                SlotStatus::CreatedBank if update.parent.is_some() => {
                    self.begin(slot, number);
                }
                SlotStatus::CreatedBank => {}
                SlotStatus::Dead => {
                    let bank = self.bank(slot, number);
                    *bank = Bank {
                        number: bank.number,
                        is_dead: true,
                        ..Bank::default()
                    };
                }
                SlotStatus::Processed | SlotStatus::Confirmed | SlotStatus::Finalized => {
                    self.reached(update, number);
                }
                SlotStatus::FirstShredReceived | SlotStatus::Completed => {}
            },
        }
    }

    /// A status is that of the ancestors, too. The server fills it in where it was not reported of them.
    fn reached(&mut self, update: &SlotUpdate, number: Option<u64>) {
        self.bank(update.slot, number).reached(update);
        let mut below = self
            .find(update.slot, number)
            .and_then(|key| self.parent(key));
        while let Some(key) = below
            && let Some(bank) = self.0.get_mut(&key)
            && !bank.has(update.status)
        {
            bank.reached(&SlotUpdate {
                slot: key.0,
                parent: None,
                ..update.clone()
            });
            below = self.parent(key);
        }
    }

    /// Forgets what finalized blocks have left behind, and the oldest blocks beyond `stored`.
    fn prune(&mut self, stored: usize) {
        let finalized = |bank: &Bank| bank.has(SlotStatus::Finalized);
        let newest = self.0.iter().rfind(|(_, bank)| finalized(bank));
        if let Some(newest) = newest.map(|(key, _)| *key) {
            let ancestry: BTreeSet<BankKey> =
                std::iter::successors(Some(newest), |key| self.parent(*key)).collect();
            self.0
                .retain(|key, _| key.0 > newest.0 || ancestry.contains(key));
        }
        self.0.retain(|_, bank| bank.is_kept());
        let mut spare = self.0.values().filter(|bank| finalized(bank)).count();
        while self.0.len() > stored && spare > FINALIZED_KEPT {
            spare -= usize::from(self.0.pop_first().is_some_and(|(_, bank)| finalized(&bank)));
        }
    }

    /// Keeps of each slot the bank that was created last: a server that does not number them knows no other.
    fn keep_newest(&mut self) {
        let newest: BTreeMap<u64, usize> = self.0.keys().copied().collect();
        self.0
            .retain(|(slot, place), _| newest.get(slot) == Some(place));
    }

    /// The replay from a slot on: of each frozen block its content, its metadata and its commitments, in this order.
    ///
    /// # Errors
    /// [`NoReplay`].
    pub fn replay(
        mut self,
        from: u64,
        settings: &ServerSettings,
    ) -> Result<Vec<Numbered>, NoReplay> {
        if !settings.bank_ids {
            self.keep_newest();
        }
        self.prune(settings.stored_slots);
        let (first, _) = *self.0.first_key_value().ok_or(NoReplay::NotStarted)?.0;
        if from < first {
            return Err(NoReplay::TooOld { first });
        }
        let mut replayed = Vec::new();
        for bank in self.0.split_off(&(from, 0)).into_values() {
            let parent = bank.block.as_ref().map(|block| block.parent_slot);
            let (content, number) = match settings.replay {
                ReplayPolicy::EveryWrite => (bank.content, bank.number),
                ReplayPolicy::OtherVersions => {
                    let number = bank.number.map(|number| number + OTHER_NUMBERS);
                    (renumbered(last_writes(bank.content)), number)
                }
                _ => (last_writes(bank.content), bank.number),
            };
            let statuses = bank.statuses.into_iter().map(|update| {
                Body::Slot(SlotUpdate {
                    parent: update.parent.or(parent),
                    ..update
                })
            });
            let block = bank.block.map(Body::BlockMeta);
            let bodies = content.into_iter().chain(block).chain(statuses);
            replayed.extend(bodies.map(|body| (number, body)));
        }
        Ok(replayed)
    }

    /// A whole block, with the last write of each account, as confirmed and finalized streams carry it.
    #[must_use]
    pub fn whole(&self, key: BankKey) -> Vec<Numbered> {
        let Some(bank) = self.0.get(&key) else {
            return Vec::new();
        };
        let block = bank.block.clone().map(Body::BlockMeta);
        let bodies = last_writes(bank.content.clone()).into_iter().chain(block);
        bodies.map(|body| (bank.number, body)).collect()
    }

    /// The bank that one builds on, once its block is known.
    #[must_use]
    pub fn parent(&self, key: BankKey) -> Option<BankKey> {
        let block = self.0.get(&key)?.block.as_ref()?;
        let hash_of = |bank: &Bank| bank.block.as_ref().map(|block| block.blockhash.clone());
        let mut banks = self.of_slot(block.parent_slot).rev();
        let newest = banks.clone().next().map(|(key, _)| *key);
        let named = banks.find(|(_, bank)| hash_of(bank).as_ref() == Some(&block.parent_blockhash));
        named.map(|(key, _)| *key).or(newest)
    }

    /// Whether this status of the bank was reported.
    #[must_use]
    pub fn has(&self, key: BankKey, status: SlotStatus) -> bool {
        self.0.get(&key).is_some_and(|bank| bank.has(status))
    }
}

/// The content without the writes of an account that a later one supersedes.
fn last_writes(content: Vec<Body>) -> Vec<Body> {
    let mut last: BTreeMap<Pubkey, u64> = BTreeMap::new();
    for body in &content {
        if let Body::Account(update) = body {
            let version = last.entry(update.pubkey).or_default();
            *version = (*version).max(update.write_version);
        }
    }
    let mut content = content;
    content.retain(|body| match body {
        Body::Account(update) => last.get(&update.pubkey) == Some(&update.write_version),
        _ => true,
    });
    content
}

fn renumbered(content: Vec<Body>) -> Vec<Body> {
    let numbered = content.into_iter().zip(1..);
    numbered
        .map(|(body, write_version)| match body {
            Body::Account(update) => Body::Account(AccountUpdate {
                write_version,
                ..update
            }),
            other => other,
        })
        .collect()
}

//! Replay of the reference server: the frozen blocks that it keeps, each with what was reported of it (pure).

use std::collections::{BTreeMap, BTreeSet};

use sluice_geyser::{AccountUpdate, BlockMeta, Body, SlotStatus, SlotUpdate};
use solana_pubkey::Pubkey;

use super::ReplayPolicy;
use crate::scripted_chain::Message;

/// Finalized blocks that are kept however few may be.
const FINALIZED_KEPT: usize = 10;

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

/// What a server holds of the slots that were reported to it.
#[derive(Clone, Debug, Default)]
pub struct Blocks(BTreeMap<u64, Bank>);

impl Blocks {
    /// The blocks after these messages.
    #[must_use]
    pub fn after(messages: &[Message]) -> Self {
        let mut blocks = Self::default();
        for message in messages {
            if let Message::Update(body) = message {
                blocks.learn(body);
            }
        }
        blocks
    }

    fn learn(&mut self, body: &Body) {
        let slot = slot_of(body);
        match body {
            Body::Account(_) | Body::Transaction(_) => {
                self.0.entry(slot).or_default().content.push(body.clone());
            }
            Body::BlockMeta(block) => {
                self.0.entry(slot).or_default().block = Some(block.clone());
            }
            Body::Slot(update) => match update.status {
                // Each creation names the parent. One that does not is a report that came again.
                SlotStatus::CreatedBank if update.parent.is_some() => {
                    self.0.insert(slot, Bank::default());
                }
                SlotStatus::CreatedBank => {}
                SlotStatus::Dead => {
                    let dead = Bank {
                        is_dead: true,
                        ..Bank::default()
                    };
                    self.0.insert(slot, dead);
                }
                SlotStatus::Processed | SlotStatus::Confirmed | SlotStatus::Finalized => {
                    self.reached(update);
                }
                SlotStatus::FirstShredReceived | SlotStatus::Completed => {}
            },
        }
    }

    /// A status is that of the ancestors, too. The server fills it in where it was not reported of them.
    fn reached(&mut self, update: &SlotUpdate) {
        self.0.entry(update.slot).or_default().reached(update);
        let mut below = self.parent(update.slot);
        while let Some(slot) = below
            && let Some(bank) = self.0.get_mut(&slot)
            && !bank.has(update.status)
        {
            bank.reached(&SlotUpdate {
                slot,
                parent: None,
                ..update.clone()
            });
            below = self.parent(slot);
        }
    }

    /// Forgets what finalized blocks have left behind, and the oldest blocks beyond `stored`.
    fn prune(&mut self, stored: usize) {
        let finalized = |bank: &Bank| bank.has(SlotStatus::Finalized);
        let newest = self.0.iter().rfind(|(_, bank)| finalized(bank));
        if let Some(newest) = newest.map(|(slot, _)| *slot) {
            let parent = |slot: &u64| Some(self.0.get(slot)?.block.as_ref()?.parent_slot);
            let ancestry: BTreeSet<u64> =
                std::iter::successors(Some(newest), |slot| parent(slot)).collect();
            self.0
                .retain(|slot, _| *slot > newest || ancestry.contains(slot));
        }
        self.0.retain(|_, bank| bank.is_kept());
        let mut spare = self.0.values().filter(|bank| finalized(bank)).count();
        while self.0.len() > stored && spare > FINALIZED_KEPT {
            spare -= usize::from(self.0.pop_first().is_some_and(|(_, bank)| finalized(&bank)));
        }
    }

    /// The replay from a slot on: of each frozen block its content, its metadata and its commitments, in this order.
    ///
    /// # Errors
    /// [`NoReplay`].
    pub fn replay(
        mut self,
        from: u64,
        stored: usize,
        policy: &ReplayPolicy,
    ) -> Result<Vec<Body>, NoReplay> {
        self.prune(stored);
        let first = *self.0.first_key_value().ok_or(NoReplay::NotStarted)?.0;
        if from < first {
            return Err(NoReplay::TooOld { first });
        }
        let mut replayed = Vec::new();
        for bank in self.0.split_off(&from).into_values() {
            let parent = bank.block.as_ref().map(|block| block.parent_slot);
            replayed.extend(match policy {
                ReplayPolicy::EveryWrite => bank.content,
                ReplayPolicy::OtherVersions => renumbered(last_writes(bank.content)),
                _ => last_writes(bank.content),
            });
            replayed.extend(bank.block.map(Body::BlockMeta));
            replayed.extend(bank.statuses.into_iter().map(|update| {
                Body::Slot(SlotUpdate {
                    parent: update.parent.or(parent),
                    ..update
                })
            }));
        }
        Ok(replayed)
    }

    /// A whole block, with the last write of each account, as confirmed and finalized streams carry it.
    #[must_use]
    pub fn whole(&self, slot: u64) -> Vec<Body> {
        let Some(bank) = self.0.get(&slot) else {
            return Vec::new();
        };
        let block = bank.block.clone().map(Body::BlockMeta);
        last_writes(bank.content.clone())
            .into_iter()
            .chain(block)
            .collect()
    }

    /// The parent of a slot, once its block is known.
    #[must_use]
    pub fn parent(&self, slot: u64) -> Option<u64> {
        Some(self.0.get(&slot)?.block.as_ref()?.parent_slot)
    }

    /// Whether this status of the slot was reported.
    #[must_use]
    pub fn has(&self, slot: u64, status: SlotStatus) -> bool {
        self.0.get(&slot).is_some_and(|bank| bank.has(status))
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

/// The slot that an update is about.
#[must_use]
pub fn slot_of(body: &Body) -> u64 {
    match body {
        Body::Account(update) => update.slot,
        Body::Transaction(update) => update.slot,
        Body::Slot(update) => update.slot,
        Body::BlockMeta(update) => update.slot,
    }
}

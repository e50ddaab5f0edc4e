//! Scripted chain: what is true of each slot, what a validator has told its plugin of it, and in which order.
//!
//! It stands for the validator that a server and a node report: both, the script and the judge see one state of it. A
//! script may report less than is true, later, or twice, which no validator does on demand. Only block metadata comes by
//! itself, before the first `Processed` of each bank, as from every validator.

mod statuses;
mod write_tree;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cpmm::ids;
use sluice_geyser::{AccountUpdate, Body, SlotStatus, SlotUpdate, scripted::Code};
use tokio::sync::watch;

pub use statuses::ReportedStatuses;
pub use write_tree::{State, Write, WriteTree};

use crate::cast;

/// How a server ends a stream.
#[derive(Clone, Debug)]
pub enum Ending {
    /// With an error.
    Error(Code, String),
    /// Without a word.
    Close,
}

/// What a validator tells its plugin, or what a script does to the streams at that moment.
#[derive(Clone, Debug)]
pub enum Message {
    /// Something of the chain.
    Update(Body),
    /// A ping.
    Ping,
    /// A message without content.
    Garbage,
    /// An account write with this much data, which no filter asked for.
    Oversized(usize),
    /// The end of every stream that is open now.
    End(Ending),
}

impl Message {
    /// A write in a slot.
    #[must_use]
    pub fn write(slot: u64, write: &Write) -> Self {
        let account = write.content.account();
        Self::Update(Body::Account(AccountUpdate {
            slot,
            pubkey: write.key,
            owner: account.owner,
            lamports: account.lamports,
            executable: false,
            rent_epoch: u64::MAX,
            data: account.data,
            write_version: write.version,
            txn_signature: None,
            is_startup: false,
        }))
    }

    /// A slot's status.
    #[must_use]
    pub fn status(slot: u64, status: SlotStatus, parent: Option<u64>) -> Self {
        Self::Update(Body::Slot(SlotUpdate {
            slot,
            parent,
            status,
            dead_error: None,
        }))
    }
}

/// Everything behind one lock, so that a stream, a node and the model always see one state.
pub struct ChainRecord {
    /// The truth.
    pub tree: WriteTree,
    /// What was reported of it.
    pub statuses: ReportedStatuses,
    /// Every message reported, in order, from the first slot's statuses on.
    pub messages: Vec<Message>,
    /// Slots of whose present bank the metadata was reported.
    with_metadata: BTreeSet<u64>,
    /// What readers may see of each slot that was reported to be frozen. More than one state only where a script delivers a
    /// write late.
    pub states: BTreeMap<u64, Vec<State>>,
    /// How far the node is.
    pub node: NodeSlot,
}

/// How far the node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeSlot {
    /// Where the stream is.
    #[default]
    OfTheStream,
    /// In this slot, confirmed.
    Fixed(u64),
}

/// The record, shared.
#[derive(Clone)]
pub struct ScriptedChain {
    record: Arc<Mutex<ChainRecord>>,
    reported: watch::Sender<usize>,
}

impl ScriptedChain {
    /// A record of one slot.
    #[must_use]
    pub fn new(genesis: u64, state: State) -> Self {
        let states = BTreeMap::from([(genesis, vec![state.clone()])]);
        let mut record = ChainRecord {
            tree: WriteTree::new(genesis, state),
            statuses: ReportedStatuses::new(genesis),
            messages: Vec::new(),
            with_metadata: BTreeSet::new(),
            states,
            node: NodeSlot::OfTheStream,
        };
        for status in [SlotStatus::Processed, SlotStatus::Confirmed] {
            record.report(Message::status(genesis, status, None));
        }
        let reported = record.messages.len();
        Self {
            record: Arc::new(Mutex::new(record)),
            reported: watch::Sender::new(reported),
        }
    }

    /// The record. Never held while waiting.
    pub fn lock(&self) -> MutexGuard<'_, ChainRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the validator tell its plugin something.
    pub fn report(&self, message: Message) {
        let mut record = self.lock();
        record.report(message);
        let len = record.messages.len();
        drop(record);
        self.reported.send_replace(len);
    }

    /// A whole slot on `parent`: the clock goes on, and the slot is confirmed.
    pub fn pass(&self, parent: u64) -> u64 {
        let slot = parent + 1;
        let write = {
            let mut record = self.lock();
            record.tree.open(slot, parent);
            let clock = cast::clock(slot, cast::EPOCH);
            record.tree.write(slot, ids::CLOCK, clock)
        };
        let status = |status, parent| self.report(Message::status(slot, status, parent));
        status(SlotStatus::CreatedBank, Some(parent));
        self.report(Message::write(slot, &write));
        status(SlotStatus::Processed, Some(parent));
        status(SlotStatus::Confirmed, None);
        slot
    }

    /// Wakes when something more was reported.
    #[must_use]
    pub fn listen(&self) -> watch::Receiver<usize> {
        self.reported.subscribe()
    }
}

impl ChainRecord {
    fn report(&mut self, message: Message) {
        match &message {
            Message::Update(Body::Slot(update)) => {
                self.learn(update);
                match update.status {
                    // Another bank of the slot begins.
                    SlotStatus::CreatedBank => drop(self.with_metadata.remove(&update.slot)),
                    SlotStatus::Processed => self.report_metadata(update.slot),
                    _ => {}
                }
            }
            Message::Update(Body::BlockMeta(block)) => {
                self.with_metadata.insert(block.slot);
            }
            _ => {}
        }
        self.messages.push(message);
    }

    /// Reports the block of a slot, once for each of its banks.
    fn report_metadata(&mut self, slot: u64) {
        if self.tree.contains(slot) && self.with_metadata.insert(slot) {
            let block = self.tree.block_meta(slot);
            self.messages.push(Message::Update(Body::BlockMeta(block)));
        }
    }

    fn learn(&mut self, update: &SlotUpdate) {
        let slot = update.slot;
        if let Some(parent) = update.parent {
            self.statuses.parents.insert(slot, parent);
        }
        match update.status {
            SlotStatus::Processed => {
                self.statuses.processed.insert(slot);
                self.allow(slot);
            }
            SlotStatus::Confirmed | SlotStatus::Finalized => {
                self.statuses.confirmed.insert(slot);
            }
            SlotStatus::Dead => {
                self.statuses.dead.insert(slot);
            }
            SlotStatus::FirstShredReceived | SlotStatus::Completed | SlotStatus::CreatedBank => {}
        }
    }

    /// Has the node stay where it is.
    pub fn hold_node(&mut self) {
        self.node = NodeSlot::Fixed(self.node_slot(false));
    }

    /// The newest slot that the node knows.
    #[must_use]
    pub fn node_slot(&self, processed: bool) -> u64 {
        match self.node {
            NodeSlot::Fixed(slot) => slot,
            NodeSlot::OfTheStream if processed => self.statuses.processed_slot(),
            NodeSlot::OfTheStream => self.statuses.confirmed_slot(),
        }
    }

    /// From now on readers may see this slot as it is now.
    pub fn allow(&mut self, slot: u64) {
        let state = self.tree.state(slot);
        let states = self.states.entry(slot).or_default();
        if !states.contains(&state) {
            states.push(state);
        }
    }
}

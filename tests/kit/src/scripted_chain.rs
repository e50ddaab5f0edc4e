//! Scripted chain: the truth of the market's simulations, what was reported of it, and all messages in order.
//!
//! It stands for the validator that a server and a node report: both, the script and the judge see one state of it. A
//! script may report less than is true, later, or twice, which no validator does on demand.

mod statuses;
mod write_tree;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cpmm::ids;
use sluice_geyser::{SlotStatus, SlotUpdate, scripted::Code};
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

/// One message of the server, or its end.
#[derive(Clone, Debug)]
pub enum Message {
    /// A write, to whom it matches.
    Account {
        /// The slot.
        slot: u64,
        /// The write.
        write: Write,
    },
    /// A slot's status.
    Slot(SlotUpdate),
    /// A ping.
    Ping,
    /// A message without content.
    Garbage,
    /// An account write with this much data, which no filter asked for.
    Oversized(usize),
    /// The end of every stream that is open now.
    End(Ending),
}

/// Everything behind one lock, so that a stream, a node and the model always see one state.
pub struct ChainRecord {
    /// The truth.
    pub tree: WriteTree,
    /// What was reported of it.
    pub statuses: ReportedStatuses,
    /// Every message reported, in order.
    pub messages: Vec<Message>,
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
        let record = ChainRecord {
            tree: WriteTree::new(genesis, state),
            statuses: ReportedStatuses::new(genesis),
            messages: Vec::new(),
            states,
            node: NodeSlot::OfTheStream,
        };
        Self {
            record: Arc::new(Mutex::new(record)),
            reported: watch::Sender::new(0),
        }
    }

    /// The record. Never held while waiting.
    pub fn lock(&self) -> MutexGuard<'_, ChainRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the server say something.
    pub fn report(&self, message: Message) {
        let mut record = self.lock();
        if let Message::Slot(update) = &message {
            record.learn(update);
        }
        record.messages.push(message);
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
        let reported = |status, parent| {
            self.report(Message::Slot(SlotUpdate {
                slot,
                parent,
                status,
                dead_error: None,
            }));
        };
        reported(SlotStatus::CreatedBank, Some(parent));
        self.report(Message::Account { slot, write });
        reported(SlotStatus::Processed, Some(parent));
        reported(SlotStatus::Confirmed, None);
        slot
    }

    /// Wakes when something more was reported.
    #[must_use]
    pub fn listen(&self) -> watch::Receiver<usize> {
        self.reported.subscribe()
    }
}

impl ChainRecord {
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

//! The chain, what was told of it, and the record of every message in order; shared by the server, the node and the
//! script.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cpmm::ids;
use sluice_geyser::{SlotStatus, SlotUpdate, scripted::Code};
use tokio::sync::watch;

use crate::{
    cast,
    chain::{Chain, State, Write},
    told::Told,
};

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
pub struct World {
    /// The truth.
    pub chain: Chain,
    /// What was told of it.
    pub told: Told,
    /// Every message told, in order.
    pub record: Vec<Message>,
    /// What readers may see of each slot that was told to be frozen. More than one state only where a script delivers a
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

/// The world, shared.
#[derive(Clone)]
pub struct Shared {
    world: Arc<Mutex<World>>,
    told: watch::Sender<usize>,
}

impl Shared {
    /// A world of one slot.
    #[must_use]
    pub fn new(genesis: u64, state: State) -> Self {
        let states = BTreeMap::from([(genesis, vec![state.clone()])]);
        let world = World {
            chain: Chain::new(genesis, state),
            told: Told::new(genesis),
            record: Vec::new(),
            states,
            node: NodeSlot::OfTheStream,
        };
        Self {
            world: Arc::new(Mutex::new(world)),
            told: watch::Sender::new(0),
        }
    }

    /// The world. Never held while waiting.
    pub fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the server say something.
    pub fn tell(&self, message: Message) {
        let mut world = self.lock();
        if let Message::Slot(update) = &message {
            world.learn(update);
        }
        world.record.push(message);
        let len = world.record.len();
        drop(world);
        self.told.send_replace(len);
    }

    /// A whole slot on `parent`: the clock goes on, and the slot is confirmed.
    pub fn pass(&self, parent: u64) -> u64 {
        let slot = parent + 1;
        let write = {
            let mut world = self.lock();
            world.chain.open(slot, parent);
            let clock = cast::clock(slot, cast::EPOCH);
            world.chain.write(slot, ids::CLOCK, clock)
        };
        let told = |status, parent| {
            self.tell(Message::Slot(SlotUpdate {
                slot,
                parent,
                status,
                dead_error: None,
            }));
        };
        told(SlotStatus::CreatedBank, Some(parent));
        self.tell(Message::Account { slot, write });
        told(SlotStatus::Processed, Some(parent));
        told(SlotStatus::Confirmed, None);
        slot
    }

    /// Wakes when something more was told.
    #[must_use]
    pub fn listen(&self) -> watch::Receiver<usize> {
        self.told.subscribe()
    }
}

impl World {
    fn learn(&mut self, update: &SlotUpdate) {
        let slot = update.slot;
        if let Some(parent) = update.parent {
            self.told.parents.insert(slot, parent);
        }
        match update.status {
            SlotStatus::Processed => {
                self.told.processed.insert(slot);
                self.allow(slot);
            }
            SlotStatus::Confirmed | SlotStatus::Finalized => {
                self.told.confirmed.insert(slot);
            }
            SlotStatus::Dead => {
                self.told.dead.insert(slot);
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
            NodeSlot::OfTheStream if processed => self.told.processed_slot(),
            NodeSlot::OfTheStream => self.told.confirmed_slot(),
        }
    }

    /// From now on readers may see this slot as it is now.
    pub fn allow(&mut self, slot: u64) {
        let state = self.chain.state(slot);
        let states = self.states.entry(slot).or_default();
        if !states.contains(&state) {
            states.push(state);
        }
    }
}

//! Scripted chain: the truth of each slot, and what a validator has reported of it to its plugin, in order.
//!
//! It stands for the validator that a server and a node report: both, the script and the judge see one state of it. A
//! script may report less than is true, later, or twice, which no validator does on demand. Only block metadata comes by
//! itself, before the first `Processed` of each bank, as from every validator.

mod bank_numbers;
mod block_tree;
mod moments;
mod statuses;

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use cpmm::ids;
use sluice_geyser::{
    AccountUpdate, Body, SlotStatus, SlotUpdate, TransactionUpdate, scripted::Code,
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tokio::sync::watch;

use bank_numbers::BankNumbers;
pub use bank_numbers::slot_of;
pub use block_tree::{Block, BlockId, BlockTree, Write};
use moments::Moments;
pub use statuses::ReportedStatuses;

pub use crate::accounts::State;
use crate::{accounts::Content, scripted_pools};

/// How a server ends a stream.
#[derive(Clone, Debug)]
pub enum Ending {
    /// With an error.
    Error(Code, String),
    /// Without a word.
    Close,
}

/// What a validator reports to its plugin, or what a script does to the streams at that moment.
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
            txn_signature: write.transaction,
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
    pub tree: BlockTree,
    /// What was reported of it.
    pub statuses: ReportedStatuses,
    /// Every message reported, in order, from the first slot's statuses on.
    pub messages: Vec<Message>,
    /// Of each message the number of the bank that it is of; `None` of what is of none.
    banks: Vec<Option<u64>>,
    numbers: BankNumbers,
    /// Slots of whose present bank the metadata was reported.
    with_metadata: BTreeSet<u64>,
    /// What readers may see of each slot that was reported to be frozen.
    moments: Moments,
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
        let mut record = ChainRecord {
            tree: BlockTree::new(genesis, state),
            statuses: ReportedStatuses::new(genesis),
            messages: Vec::new(),
            banks: Vec::new(),
            numbers: BankNumbers::default(),
            with_metadata: BTreeSet::new(),
            moments: Moments::default(),
            node: NodeSlot::OfTheStream,
        };
        for status in [SlotStatus::Processed, SlotStatus::Confirmed] {
            record.report(Message::status(genesis, status, None), None);
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

    /// Has the validator report something to its plugin.
    pub fn report(&self, message: Message) {
        self.report_timed(message);
    }

    /// Has the validator report something of a block, whichever the slot has now.
    fn report_of(&self, id: BlockId, message: Message) {
        self.report_with(message, Some(id));
    }

    /// As [`ScriptedChain::report`]. Returns when servers could see it.
    pub fn report_timed(&self, message: Message) -> Instant {
        self.report_with(message, None)
    }

    fn report_with(&self, message: Message, block: Option<BlockId>) -> Instant {
        let mut record = self.lock();
        record.report(message, block);
        let len = record.messages.len();
        let at = Instant::now();
        drop(record);
        self.reported.send_replace(len);
        at
    }

    /// A whole slot on `parent`: the clock goes on, and the slot is confirmed.
    pub fn pass(&self, parent: u64) -> u64 {
        let slot = parent + 1;
        let write = {
            let mut record = self.lock();
            record.tree.open(slot, parent);
            let clock = scripted_pools::clock(slot, scripted_pools::EPOCH);
            record.tree.write(slot, ids::CLOCK, clock)
        };
        let status = |status, parent| self.report(Message::status(slot, status, parent));
        status(SlotStatus::CreatedBank, Some(parent));
        self.report(Message::write(slot, &write));
        status(SlotStatus::Processed, Some(parent));
        status(SlotStatus::Confirmed, None);
        slot
    }

    // What happens on the chain, and is reported at once. A block is reported in the validator's own order: its bank is created, it
    // is written and executed in, its metadata comes, and then its statuses.

    /// Creates a bank of a slot: its first one, or another one in its place.
    pub fn open(&self, slot: u64, parent: BlockId) -> BlockId {
        let (id, below) = {
            let mut record = self.lock();
            let below = record.tree.block(parent).slot;
            (record.tree.open_on(slot, parent), below)
        };
        self.report_of(
            id,
            Message::status(slot, SlotStatus::CreatedBank, Some(below)),
        );
        id
    }

    /// Writes an account. What is written in a block that was given up is reported all the same.
    pub fn write(&self, id: BlockId, key: Pubkey, content: Content, by: Option<Signature>) {
        let (slot, write) = {
            let mut record = self.lock();
            let write = record.tree.write_in(id, key, content, by);
            (record.tree.block(id).slot, write)
        };
        self.report_of(id, Message::write(slot, &write));
    }

    /// Executes a transaction in the block that a slot has.
    ///
    /// # Panics
    /// When it has none.
    pub fn execute(&self, slot: u64, transaction: TransactionUpdate) {
        let current = self.lock().tree.current(slot);
        self.execute_in(current.expect("the slot has a block"), transaction);
    }

    /// Executes a transaction in a block.
    pub fn execute_in(&self, id: BlockId, transaction: TransactionUpdate) {
        let executed = self.lock().tree.execute_in(id, transaction);
        let executed = Body::Transaction(Box::new(executed));
        self.report_of(id, Message::Update(executed));
    }

    /// Freezes a block. Its status may follow, or that of a descendant instead.
    pub fn freeze(&self, id: BlockId) {
        let block = self.lock().tree.block_meta(id);
        self.report_of(id, Message::Update(Body::BlockMeta(block)));
    }

    /// Freezes a block unless that was done, and says that it is processed.
    pub fn seal(&self, id: BlockId) {
        let (slot, parent) = {
            let record = self.lock();
            let block = record.tree.block(id);
            (block.slot, record.tree.parent(block.slot))
        };
        self.report_of(id, Message::status(slot, SlotStatus::Processed, parent));
    }

    /// The chain decides for a block and all below it. Servers name no parent here.
    pub fn confirm(&self, id: BlockId) {
        let slot = {
            let mut record = self.lock();
            record.tree.confirm(id);
            record.tree.block(id).slot
        };
        self.report_of(id, Message::status(slot, SlotStatus::Confirmed, None));
    }

    /// The chain decides for good for a block and all below it.
    pub fn finalize(&self, id: BlockId) {
        let slot = {
            let mut record = self.lock();
            record.tree.finalize(id);
            record.tree.block(id).slot
        };
        self.report_of(id, Message::status(slot, SlotStatus::Finalized, None));
    }

    /// Gives a block up, and all that build on it. Only of those that `is_reported` names it is said.
    pub fn kill(&self, id: BlockId, mut is_reported: impl FnMut(BlockId) -> bool) {
        let victims = self.lock().tree.kill(id);
        for victim in victims {
            if is_reported(victim) {
                let slot = self.lock().tree.block(victim).slot;
                self.report_of(victim, Message::status(slot, SlotStatus::Dead, None));
            }
        }
    }

    /// Gives a slot the block back that it had, and reports all of it again but for what `is_reported` leaves out.
    pub fn revive(&self, id: BlockId, is_reported: impl Fn(&Write) -> bool) {
        let (block, parent) = {
            let mut record = self.lock();
            record.tree.revive(id);
            let block = record.tree.block(id).clone();
            let parent = record.tree.parent(block.slot);
            (block, parent)
        };
        let slot = block.slot;
        self.report_of(id, Message::status(slot, SlotStatus::CreatedBank, parent));
        for executed in block.transactions {
            let executed = Body::Transaction(Box::new(executed));
            self.report_of(id, Message::Update(executed));
        }
        for write in block.writes.iter().filter(|write| is_reported(write)) {
            self.report_of(id, Message::write(slot, write));
        }
        self.freeze(id);
    }

    /// Wakes when something more was reported.
    #[must_use]
    pub fn listen(&self) -> watch::Receiver<usize> {
        self.reported.subscribe()
    }
}

impl ChainRecord {
    fn report(&mut self, message: Message, block: Option<BlockId>) {
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
        self.push(message, block);
    }

    fn push(&mut self, message: Message, block: Option<BlockId>) {
        let bank = match &message {
            Message::Update(body) => self.numbers.of(body, block),
            _ => None,
        };
        self.banks.push(bank);
        self.messages.push(message);
    }

    /// The messages of these numbers, each with the number of the bank that it is of.
    pub fn reported(&self, numbers: Range<usize>) -> impl Iterator<Item = (&Message, Option<u64>)> {
        let messages = self.messages.get(numbers.clone()).unwrap_or_default();
        let banks = self.banks.get(numbers).unwrap_or_default();
        messages.iter().zip(banks.iter().copied())
    }

    /// Reports the block of a slot, once for each of its banks.
    fn report_metadata(&mut self, slot: u64) {
        if let Some(id) = self.tree.current(slot)
            && self.with_metadata.insert(slot)
        {
            let block = self.tree.block_meta(id);
            self.push(Message::Update(Body::BlockMeta(block)), Some(id));
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
        self.moments.allow(&self.tree, slot);
    }

    /// What readers may see of a slot, the newest last; nothing before it was reported to be frozen. More than one state only
    /// where a script delivers a write late, or the slot has another block.
    pub fn states(&self, slot: u64) -> impl DoubleEndedIterator<Item = &State> {
        self.moments.of(&self.tree, slot)
    }
}

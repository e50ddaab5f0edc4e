//! Messages inside the plugin: owned copies of what the validator lends to its callbacks.

use std::sync::Arc;

use bytes::Bytes;
use yellowstone_grpc_proto::{
    geyser::{
        CommitmentLevel, SlotStatus, SubscribeUpdateBlockMeta, SubscribeUpdateEntry,
        SubscribeUpdateTransactionInfo,
    },
    prost_types::Timestamp,
};

/// A slot number.
pub type Slot = u64;

/// A 32-byte account address.
pub type Address = [u8; 32];

/// Commitment level of a slot, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Commitment {
    /// Executed by this validator.
    #[default]
    Processed,
    /// Voted on by a supermajority.
    Confirmed,
    /// Rooted: it can no longer be rolled back.
    Finalized,
}

impl Commitment {
    /// All levels, lowest first.
    pub const ALL: [Self; 3] = [Self::Processed, Self::Confirmed, Self::Finalized];

    /// The level's position in [`Commitment::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The slot status that reports this level.
    pub fn slot_status(self) -> SlotStatus {
        match self {
            Self::Processed => SlotStatus::SlotProcessed,
            Self::Confirmed => SlotStatus::SlotConfirmed,
            Self::Finalized => SlotStatus::SlotFinalized,
        }
    }
}

impl From<CommitmentLevel> for Commitment {
    fn from(level: CommitmentLevel) -> Self {
        match level {
            CommitmentLevel::Processed => Self::Processed,
            CommitmentLevel::Confirmed => Self::Confirmed,
            CommitmentLevel::Finalized => Self::Finalized,
        }
    }
}

/// One write of one account.
#[derive(Debug, Clone, PartialEq)]
pub struct AccountUpdate {
    /// The slot whose bank was written.
    pub slot: Slot,
    /// The account's address.
    pub address: Address,
    /// The program that owns the account after the write.
    pub owner: Address,
    /// Balance in lamports after the write.
    pub lamports: u64,
    /// Whether the account holds a loadable program.
    pub executable: bool,
    /// The epoch at which the account would next owe rent.
    pub rent_epoch: u64,
    /// Account data after the write; shared, never copied per subscriber.
    pub data: Bytes,
    /// Orders writes within one validator process.
    pub write_version: u64,
    /// First signature of the transaction that wrote it, if a transaction did.
    pub txn_signature: Option<[u8; 64]>,
    /// Whether the write comes from loading a snapshot.
    pub is_startup: bool,
}

/// One executed transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionUpdate {
    /// The slot it was executed in.
    pub slot: Slot,
    /// Its first signature.
    pub signature: [u8; 64],
    /// Whether it is a simple vote.
    pub is_vote: bool,
    /// Whether it ended in an error.
    pub failed: bool,
    /// Every account it names: static keys, then loaded writable, then loaded readonly addresses.
    pub keys: Vec<Address>,
    /// Owners of the token accounts whose balances it reports.
    pub token_owners: Vec<TokenOwner>,
    /// The wire form.
    pub info: SubscribeUpdateTransactionInfo,
    /// Encoded size of the wire form in bytes.
    pub wire_bytes: usize,
}

/// Owner of a token account that a transaction names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenOwner {
    /// The owner's address.
    pub owner: Address,
    /// Whether the transaction changed the token account's amount or closed it.
    pub balance_changed: bool,
}

/// A frozen block: everything that happened in a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Its metadata.
    pub meta: Arc<SubscribeUpdateBlockMeta>,
    /// The last write of each account, by write version.
    pub accounts: Vec<Arc<AccountUpdate>>,
    /// Its transactions, by index.
    pub transactions: Vec<Arc<TransactionUpdate>>,
    /// Its entries, by index.
    pub entries: Vec<Arc<SubscribeUpdateEntry>>,
}

/// A status of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotUpdate {
    /// The slot.
    pub slot: Slot,
    /// Its parent, where known.
    pub parent: Option<Slot>,
    /// The status.
    pub status: SlotStatus,
    /// Why the slot is dead, with [`SlotStatus::SlotDead`].
    pub dead_error: Option<Arc<str>>,
}

/// What a stream can emit to a subscriber.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// An account was written.
    Account(Arc<AccountUpdate>),
    /// A transaction was executed.
    Transaction(Arc<TransactionUpdate>),
    /// A group of transactions, or a tick of the leader's clock, was recorded.
    Entry(Arc<SubscribeUpdateEntry>),
    /// A block was completed, with its content.
    Block(Arc<Block>),
    /// A block was completed.
    BlockMeta(Arc<SubscribeUpdateBlockMeta>),
    /// A slot changed its status.
    Slot(SlotUpdate),
}

impl Update {
    /// The slot it belongs to.
    pub fn slot(&self) -> Slot {
        match self {
            Self::Account(account) => account.slot,
            Self::Transaction(transaction) => transaction.slot,
            Self::Entry(entry) => entry.slot,
            Self::Block(block) => block.meta.slot,
            Self::BlockMeta(meta) => meta.slot,
            Self::Slot(slot) => slot.slot,
        }
    }

    /// Roughly how many bytes it keeps in memory. A block shares its content with the updates before it.
    pub fn weight(&self) -> usize {
        /// Fixed fields, reference counts and collection overhead of one update.
        const OVERHEAD_BYTES: usize = 256;
        OVERHEAD_BYTES
            + match self {
                Self::Account(account) => account.data.len(),
                Self::Transaction(transaction) => transaction.wire_bytes,
                Self::Entry(_) | Self::Block(_) | Self::BlockMeta(_) | Self::Slot(_) => 0,
            }
    }
}

/// An update with the time at which the validator reported it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What happened.
    pub update: Update,
    /// When the callback ran, for latency measurement by the subscriber.
    pub created_at: Timestamp,
}

//! Entries of the stream: what a server reports of the scripted chain, and the transcript of it.

use std::{
    fmt::Write as _,
    iter,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use sluice_geyser::{Body, SlotStatus, Update};
use sluice_testkit::updates::{account_of, block_on, key, program, slot, transaction};
use solana_signature::Signature;

use super::chain::{Block, BlockIndex, Chain, Mark, Write};

/// One message of the stream.
#[derive(Clone, Debug)]
pub enum Entry {
    Write(Write),
    Transaction { index: u8, mark: Mark },
    Block(BlockIndex),
    Status(SlotStatus),
}

impl Entry {
    /// The entry as the stream has it, under the name of the slots filter in force.
    pub fn update(&self, number: u64, chain: &Chain, filter: &str) -> Update {
        match self {
            Self::Write(write) => {
                let mut update = account_of(number, key(write.account), program(), Bytes::new());
                if let Body::Account(account) = &mut update.body {
                    account.write_version = write.version;
                    account.lamports = write.mark;
                    account.txn_signature = Some(signature(write.mark));
                }
                update
            }
            Self::Transaction { index, mark } => {
                let mut update = transaction(number, *index);
                if let Body::Transaction(transaction) = &mut update.body {
                    transaction.fee = *mark;
                    transaction.signature = signature(*mark);
                }
                update
            }
            Self::Block(index) => {
                let block = &chain.blocks[*index];
                let below = block.parent.map(|parent| chain.blocks[parent].slot);
                block_on(number, below.unwrap_or(number - 1), &block.hash)
            }
            Self::Status(status) => slot(filter, number, *status),
        }
    }
}

/// What happens in a block, in the order in which it is reported.
pub fn entries(block: &Block) -> Vec<Entry> {
    let created = Entry::Status(SlotStatus::CreatedBank);
    let transactions = (0..)
        .zip(&block.transactions)
        .map(|(index, mark)| Entry::Transaction { index, mark: *mark });
    let writes = block.writes.iter().copied().map(Entry::Write);
    iter::once(created)
        .chain(transactions)
        .chain(writes)
        .collect()
}

fn signature(mark: Mark) -> Signature {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&mark.to_le_bytes());
    bytes.into()
}

/// What was done in a script, entry by entry, to find out why it failed.
#[derive(Clone, Debug, Default)]
pub struct Transcript(Arc<Mutex<String>>);

impl Transcript {
    pub fn add(&self, entry: std::fmt::Arguments<'_>) {
        let mut text = self.0.lock().expect("not poisoned");
        writeln!(text, "{entry}").expect("memory");
    }

    pub fn text(&self) -> String {
        self.0.lock().expect("not poisoned").clone()
    }
}

//! Author of the fates' blocks: writes and transactions, each with a mark that no other has.

use bytes::Bytes;
use rand::{Rng, rngs::StdRng};
use sluice_geyser::{Body, TransactionUpdate};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use sluice_testkit::{
    accounts::{Account, Content},
    chain_script::Author,
    scripted_chain::{BlockId, ScriptedChain, Write},
    updates::{key, program, transaction},
};

use super::outcome::Mark;

/// Makes the marks of one script.
#[derive(Debug, Default)]
pub struct Marks {
    last: Mark,
}

impl Marks {
    fn next(&mut self) -> Mark {
        self.last += 1;
        self.last
    }

    /// A write to one of four accounts, whose lamports are the mark.
    fn write(&mut self, rng: &mut StdRng) -> (Pubkey, Content, Signature) {
        let mark = self.next();
        let account = Account {
            owner: program(),
            lamports: mark,
            data: Bytes::new(),
        };
        let key = key(rng.random_range(1..5));
        (key, Content::Other(account), signature(mark))
    }

    /// A transaction, whose fee is the mark.
    fn transaction(&mut self, slot: u64) -> TransactionUpdate {
        let mark = self.next();
        let Body::Transaction(update) = transaction(slot, 0).body else {
            unreachable!("it is one")
        };
        TransactionUpdate {
            fee: mark,
            signature: signature(mark),
            ..*update
        }
    }
}

impl Author for Marks {
    fn fill(&mut self, chain: &ScriptedChain, block: BlockId, rng: &mut StdRng) {
        let slot = chain.lock().tree.block(block).slot;
        let (transactions, writes) = (rng.random_range(0..3), rng.random_range(0..3));
        for _ in 0..transactions {
            chain.execute_in(block, self.transaction(slot));
        }
        for _ in 0..writes {
            let (key, content, by) = self.write(rng);
            chain.write(block, key, content, Some(by));
        }
    }

    fn write_late(&mut self, chain: &ScriptedChain, block: BlockId, rng: &mut StdRng) -> Write {
        let (key, content, by) = self.write(rng);
        let mut record = chain.lock();
        record.tree.write_in(block, key, content, Some(by))
    }
}

fn signature(mark: Mark) -> Signature {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&mark.to_le_bytes());
    bytes.into()
}

//! Transaction flow: a scripted chain whose slots pass by themselves, with transactions in each of them.
//!
//! It stands for users who transact at a steady rate on a chain without forks. It is stricter in one thing: each transaction
//! bears its number as its fee, so that none can be lost or come twice without being noticed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use sluice_geyser::{Body, SlotStatus, TransactionUpdate};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tokio::{task::JoinHandle, time::sleep};

use crate::{
    scripted_chain::{Message, ScriptedChain},
    updates::transaction,
};

/// How fast slots pass.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The slot after which it begins.
    pub genesis: u64,
    /// Transactions of a slot, and the time between two of them: a request is applied between any two.
    pub transactions: u64,
    /// Time between two transactions.
    pub between: Duration,
    /// Slots after which a slot is confirmed.
    pub confirmed_after: u64,
    /// Slots after which a slot is finalized.
    pub finalized_after: u64,
}

/// The flow. Dropping it ends it at once.
pub struct TransactionFlow {
    /// The highest slot that is confirmed.
    confirmed: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    task: JoinHandle<u64>,
}

impl Drop for TransactionFlow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TransactionFlow {
    /// Lets slots pass from now on. `keys` are the accounts of the transaction of a number, of which the first pays.
    pub fn start(chain: ScriptedChain, pace: Pace, keys: fn(u64) -> Vec<Pubkey>) -> Self {
        let confirmed = Arc::new(AtomicU64::new(pace.genesis));
        let stop = Arc::new(AtomicBool::new(false));
        let (reached, stopped) = (Arc::clone(&confirmed), Arc::clone(&stop));
        let task = tokio::spawn(async move {
            let mut slot = pace.genesis;
            while !stopped.load(Ordering::SeqCst) {
                slot += 1;
                pass(&chain, pace, slot, keys).await;
                let highest = slot.saturating_sub(pace.confirmed_after).max(pace.genesis);
                reached.store(highest, Ordering::SeqCst);
            }
            chain.report(Message::status(slot, SlotStatus::Finalized, None));
            slot
        });
        Self {
            confirmed,
            stop,
            task,
        }
    }

    /// The highest slot that is confirmed.
    #[must_use]
    pub fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::SeqCst)
    }

    /// Ends it after the slot that is open, and finalizes all; returns the last slot.
    ///
    /// # Panics
    /// When the flow did.
    pub async fn end(mut self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        (&mut self.task).await.expect("it does not panic")
    }
}

async fn pass(chain: &ScriptedChain, pace: Pace, slot: u64, keys: fn(u64) -> Vec<Pubkey>) {
    chain.lock().tree.open(slot, slot - 1);
    let status = |slot, status| chain.report(Message::status(slot, status, Some(slot - 1)));
    status(slot, SlotStatus::CreatedBank);
    for number in 0..pace.transactions {
        let number = slot * pace.transactions + number;
        chain.execute(slot, numbered(slot, number, keys(number)));
        sleep(pace.between).await;
    }
    status(slot, SlotStatus::Processed);
    for (after, level) in [
        (pace.confirmed_after, SlotStatus::Confirmed),
        (pace.finalized_after, SlotStatus::Finalized),
    ] {
        if slot > pace.genesis + after {
            status(slot - after, level);
        }
    }
}

fn numbered(slot: u64, number: u64, account_keys: Vec<Pubkey>) -> TransactionUpdate {
    let Body::Transaction(update) = transaction(slot, 0).body else {
        unreachable!("it is one")
    };
    let mut signature = [0; 64];
    signature[..8].copy_from_slice(&number.to_le_bytes());
    TransactionUpdate {
        signature: Signature::from(signature),
        fee: number,
        account_keys,
        log_messages: Vec::new(),
        ..*update
    }
}

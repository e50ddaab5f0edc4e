//! Running chain: slots that pass by themselves on the scripted chain, with a Yellowstone server and a node.
//!
//! It stands for a validator without faults, and its node: what it does not do, the simulations do. In a slot the clock is
//! written, and what a test has queued; a fork has one block, and never wins. It is stricter in one thing: the node may be
//! behind the stream for good.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cpmm::ids;
use sluice_chain_types::RawAccount;
use sluice_geyser::{Endpoint, TransactionUpdate};
use solana_pubkey::Pubkey;
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
    time::sleep,
};

use crate::{
    accounts::{Account, Content},
    rpc_node::RpcNode,
    scripted_chain::{BlockId, Ending, Message, ScriptedChain, State},
    scripted_pools,
    yellowstone_server::YellowstoneServer,
};

/// Blocks after which a block is finalized.
const FINALITY: usize = 32;

/// How a chain runs.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// The slot after which it begins.
    pub genesis: u64,
    /// Time between two slots.
    pub slot_time: Duration,
    /// Blocks after which a block is confirmed, which the node has reached then.
    pub confirmed_behind: usize,
    /// The Clock sysvar of a slot.
    pub clock: fn(u64) -> Content,
}

impl Running {
    /// A chain on which every slot is confirmed at once, and whose time is counted in slots.
    #[must_use]
    pub const fn at_once(genesis: u64, slot_time: Duration) -> Self {
        Self {
            genesis,
            slot_time,
            confirmed_behind: 0,
            clock: |slot| scripted_pools::clock(slot, scripted_pools::EPOCH),
        }
    }
}

/// What is to happen in the next slot.
enum Queued {
    Write(Pubkey, Content),
    Transaction(Box<TransactionUpdate>),
    /// In a block on which no other is built.
    Aside(Box<TransactionUpdate>),
}

/// The chain. Dropping it ends it.
pub struct RunningChain {
    node: RpcNode,
    server: YellowstoneServer,
    queued: mpsc::UnboundedSender<Queued>,
    /// Whether no block is confirmed.
    held: Arc<AtomicBool>,
    /// Time between two slots.
    slot_time: watch::Sender<Duration>,
    task: AbortHandle,
}

impl Drop for RunningChain {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningChain {
    /// Lets slots pass from now on; `node` follows.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(node: RpcNode, running: Running) -> io::Result<Self> {
        let chain = ScriptedChain::new(running.genesis, State::new());
        let server = YellowstoneServer::start(chain.clone()).await?;
        let (queued, waiting) = mpsc::unbounded_channel();
        let held = Arc::new(AtomicBool::new(false));
        let slot_time = watch::Sender::new(running.slot_time);
        let pace = slot_time.subscribe();
        let passing = pass(
            chain,
            running,
            node.clone(),
            waiting,
            Arc::clone(&held),
            pace,
        );
        let task = tokio::spawn(passing);
        Ok(Self {
            node,
            server,
            queued,
            held,
            slot_time,
            task: task.abort_handle(),
        })
    }

    /// How its stream is reached.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        self.server.endpoint()
    }

    /// The server of its stream.
    #[must_use]
    pub const fn server(&self) -> &YellowstoneServer {
        &self.server
    }

    /// Writes an account in the next slot.
    pub fn write(&self, account: RawAccount) {
        self.node.set(account.clone());
        let content = Content::Other(Account {
            owner: account.owner,
            lamports: account.lamports,
            data: account.data,
        });
        // The chain ends with the test.
        let _ = self.queued.send(Queued::Write(account.pubkey, content));
    }

    /// Executes a transaction in the next slot.
    pub fn execute(&self, transaction: TransactionUpdate) {
        let _ = self.queued.send(Queued::Transaction(Box::new(transaction)));
    }

    /// Executes a transaction in a slot of a fork that is left behind.
    pub fn execute_aside(&self, transaction: TransactionUpdate) {
        let _ = self.queued.send(Queued::Aside(Box::new(transaction)));
    }

    /// Lets a slot pass in this time from the next one on.
    pub fn pace(&self, slot_time: Duration) {
        self.slot_time.send_replace(slot_time);
    }

    /// Whether no block is confirmed from now on. What was held up is confirmed with the next slot.
    pub fn hold_confirmations(&self, held: bool) {
        self.held.store(held, Ordering::SeqCst);
    }

    /// Ends every stream that is open; each can be opened again at once.
    pub fn cut(&self) {
        self.server.chain().report(Message::End(Ending::Close));
    }

    /// The slot that the node has reached.
    #[must_use]
    pub fn slot(&self) -> u64 {
        self.node.slot()
    }
}

async fn pass(
    chain: ScriptedChain,
    running: Running,
    node: RpcNode,
    mut queued: mpsc::UnboundedReceiver<Queued>,
    held: Arc<AtomicBool>,
    slot_time: watch::Receiver<Duration>,
) {
    let mut tip = chain.lock().tree.confirmed();
    let (mut unconfirmed, mut unfinalized) = (VecDeque::new(), VecDeque::new());
    for slot in running.genesis + 1.. {
        // On a busy machine slots are longer, and do not come at once.
        let pause = *slot_time.borrow();
        sleep(pause).await;
        let below = tip;
        let mut is_aside = false;
        tip = chain.open(slot, tip);
        while let Ok(queued) = queued.try_recv() {
            match queued {
                Queued::Aside(transaction) => {
                    is_aside = true;
                    chain.execute(slot, *transaction);
                }
                Queued::Write(address, content) => chain.write(tip, address, content, None),
                Queued::Transaction(transaction) => chain.execute(slot, *transaction),
            }
        }
        chain.write(tip, ids::CLOCK, (running.clock)(slot), None);
        chain.freeze(tip);
        chain.seal(tip);
        if is_aside {
            tip = below;
            continue;
        }
        unconfirmed.push_back(tip);
        while !held.load(Ordering::SeqCst)
            && let Some(block) = ripe(&mut unconfirmed, running.confirmed_behind)
        {
            node.reach(chain.lock().tree.block(block).slot);
            chain.confirm(block);
            unfinalized.push_back(block);
        }
        while let Some(block) = ripe(&mut unfinalized, FINALITY) {
            chain.finalize(block);
        }
    }
}

/// The oldest block, once this many are behind it.
fn ripe(blocks: &mut VecDeque<BlockId>, behind: usize) -> Option<BlockId> {
    (blocks.len() > behind).then(|| blocks.pop_front())?
}

//! RPC node: JSON-RPC over a scripted chain, or over accounts rendered beforehand, with faults of its own.
//!
//! It stands for the node that the market and the API ask. It is stricter than one: what it does not understand to the
//! last field is refused and kept for [`RpcNode::not_understood`], and an account is never newer than the slot that the
//! answer names.

mod answering;
pub mod blocks;
mod chain_accounts;
mod provider;
mod rendered;
pub mod wire;

pub use provider::{Gateway, Provider, ProviderCounts, Verdict};

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{Router, routing::post};
use serde_json::Value;
use sluice_chain_types::RawAccount;
use solana_pubkey::Pubkey;
use tokio::{net::TcpListener, task::AbortHandle};

use crate::{
    pool::Ledger,
    rpc_node::{answering::answer, blocks::BlockLedger, rendered::Rendered, wire::Call},
    scripted_chain::ScriptedChain,
};

/// Balance of accounts that are placed without one, lamports: rent-exempt, whatever they hold.
const RENT_EXEMPT: u64 = 10_000_000;

/// What goes wrong with one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An HTTP error without a JSON body.
    Http(u16),
    /// A JSON-RPC error.
    Refused(i64, String),
    /// The connection ends in the middle of the answer.
    HangsUp,
    /// The answer is no JSON.
    Garbage,
    /// The answer comes this much later.
    Slow(Duration),
    /// The answer comes in ten pieces, with so long a pause before each.
    Drips(Duration),
}

/// The node; clones share it. Dropping the last one ends it.
#[derive(Clone)]
pub struct RpcNode {
    asked: Arc<Asked>,
    serving: Arc<Serving>,
}

struct Serving {
    address: SocketAddr,
    task: AbortHandle,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What it answers from.
enum Source {
    /// The slots of a scripted chain.
    Chain(ScriptedChain),
    /// Accounts that are all of one slot.
    Rendered(Mutex<Rendered>),
}

struct Asked {
    source: Source,
    blocks: Mutex<BlockLedger>,
    play: Mutex<Play>,
}

#[derive(Default)]
struct Play {
    faults: VecDeque<Fault>,
    /// Whether calls are answered at different slots.
    drifts: bool,
    /// Whether every call fails.
    fails: bool,
    delay: Duration,
    /// Calls of a chain that were taken.
    calls: Vec<Call>,
    /// Calls, by method.
    counts: HashMap<String, usize>,
    /// The slot that the last call demanded, by method.
    demands: HashMap<String, u64>,
    /// What is answered to calls of these methods, beside the slot.
    scripted: HashMap<String, Value>,
    /// Parameters of the last such call, by method.
    params: HashMap<String, Value>,
    /// Transactions that were taken, in order, those that came again too.
    sent: Vec<Vec<u8>>,
    /// Calls not understood.
    unknown: Vec<String>,
    /// What stands in front of the node.
    gateway: Option<Arc<Mutex<Gateway>>>,
}

impl RpcNode {
    /// A node of this chain. It is as far as the chain, unless the chain holds it.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn of_chain(chain: ScriptedChain) -> io::Result<Self> {
        Self::start(Source::Chain(chain)).await
    }

    /// A node that holds these accounts, rendered beforehand, so that what an answer costs is not measured along.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn holding(accounts: impl IntoIterator<Item = RawAccount>) -> io::Result<Self> {
        let mut rendered = Rendered::default();
        for account in accounts {
            rendered.set(account);
        }
        Self::start(Source::Rendered(Mutex::new(rendered))).await
    }

    async fn start(source: Source) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Asked {
            source,
            blocks: Mutex::default(),
            play: Mutex::default(),
        });
        let app = Router::new()
            .route("/", post(answer))
            .with_state(Arc::clone(&asked));
        let task = tokio::spawn(async move {
            axum::serve(listener, app)
                .await
                .expect("the port stays bound");
        })
        .abort_handle();
        Ok(Self {
            asked,
            serving: Arc::new(Serving { address, task }),
        })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.serving.address)
    }

    /// Replaces an account that it holds.
    ///
    /// # Panics
    /// When it is the node of a chain, whose accounts only the chain writes.
    pub fn set(&self, account: RawAccount) {
        self.rendered().set(account);
    }

    /// Removes an account that it holds.
    ///
    /// # Panics
    /// As [`RpcNode::set`].
    pub fn remove(&self, address: &Pubkey) {
        self.rendered().remove(address);
    }

    /// Is confirmed up to this slot from now on.
    ///
    /// # Panics
    /// As [`RpcNode::set`].
    pub fn reach(&self, slot: u64) {
        self.rendered().slot = slot;
    }

    /// The slot that it has reached.
    ///
    /// # Panics
    /// As [`RpcNode::set`].
    #[must_use]
    pub fn slot(&self) -> u64 {
        self.rendered().slot
    }

    fn rendered(&self) -> MutexGuard<'_, Rendered> {
        match &self.asked.source {
            Source::Rendered(rendered) => lock(rendered),
            Source::Chain(_) => panic!("only the chain writes the accounts of its node"),
        }
    }

    /// The blocks that it has. It answers calls about them once there are any.
    pub fn blocks(&self) -> MutexGuard<'_, BlockLedger> {
        lock(&self.asked.blocks)
    }

    /// Has the next calls go wrong, one after the other.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.asked.play().faults.extend(faults);
    }

    /// Forgets faults that no call has met.
    pub fn heal(&self) {
        self.asked.play().faults.clear();
    }

    /// Whether every later call fails.
    pub fn fail_all(&self, fails: bool) {
        self.asked.play().fails = fails;
    }

    /// Lets every later call wait this long before it is answered.
    pub fn delay(&self, delay: Duration) {
        self.asked.play().delay = delay;
    }

    /// Whether every call is answered at another slot of the chain.
    pub fn drift(&self, drifts: bool) {
        self.asked.play().drifts = drifts;
    }

    /// Puts a provider in front of the node, in place of the one before.
    pub fn provide_by(&self, provider: Provider) {
        self.asked.play().gateway = Some(Arc::new(Mutex::new(Gateway::new(provider))));
    }

    /// What the provider did so far; nothing where there is none.
    #[must_use]
    pub fn provided(&self) -> ProviderCounts {
        let gateway = self.asked.gateway();
        gateway.map_or_else(ProviderCounts::default, |gateway| lock(&gateway).counts())
    }

    /// Calls that the node of a chain has taken so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.asked.play().calls.clone()
    }

    /// How often a method was called since the last [`RpcNode::forget_calls`].
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.asked.play().counts.get(method).copied().unwrap_or(0)
    }

    /// The slot that the last call of a method demanded which demanded one.
    #[must_use]
    pub fn demanded(&self, method: &str) -> Option<u64> {
        self.asked.play().demands.get(method).copied()
    }

    /// Answers every later call of this method with this result.
    pub fn script(&self, method: &str, value: Value) {
        self.asked.play().scripted.insert(method.to_owned(), value);
    }

    /// The parameters of the last call of a scripted method.
    #[must_use]
    pub fn params(&self, method: &str) -> Option<Value> {
        self.asked.play().params.get(method).cloned()
    }

    /// The bytes of the transactions that it has taken, in order, those that came again too.
    #[must_use]
    pub fn sent(&self) -> Vec<Vec<u8>> {
        self.asked.play().sent.clone()
    }

    /// Starts counting anew.
    pub fn forget_calls(&self) {
        self.asked.play().counts.clear();
    }

    /// Calls that were not understood.
    #[must_use]
    pub fn not_understood(&self) -> Vec<String> {
        self.asked.play().unknown.clone()
    }
}

impl Ledger for RpcNode {
    fn place(&mut self, address: Pubkey, owner: Pubkey, data: Vec<u8>) {
        self.set(RawAccount {
            pubkey: address,
            owner,
            lamports: RENT_EXEMPT,
            data: data.into(),
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Asked {
    fn play(&self) -> MutexGuard<'_, Play> {
        lock(&self.play)
    }

    /// The provider in front of the node, if any.
    fn gateway(&self) -> Option<Arc<Mutex<Gateway>>> {
        self.play().gateway.clone()
    }

    /// Whether a list of this length is sent.
    fn sends(&self, length: usize) -> bool {
        self.gateway()
            .is_none_or(|gateway| lock(&gateway).sends(length))
    }
}

/// Error code and text of a provider that does not want to send so long a list, as one of them words it.
const TOO_LONG: (i64, &str) = (
    -32600,
    "Request deprioritized due to number of accounts requested. Slow down requests or add filters to narrow down results",
);

fn too_long(id: &Value) -> Value {
    let (code, text) = TOO_LONG;
    wire::refusal(id, code, text, Value::Null)
}

//! RPC node: JSON-RPC over a scripted chain, or over accounts rendered beforehand, with faults of its own.
//!
//! It stands for the node that the market and the API ask. It is stricter than one: what it does not understand to the
//! last field is refused and kept for [`RpcNode::not_understood`], and an account is never newer than the slot that the
//! answer names.

pub mod blocks;
mod provider;
mod rendered;
pub mod wire;

pub use provider::{Provider, ProviderCounts};

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use sluice_chain_types::RawAccount;
use solana_pubkey::Pubkey;
use tokio::{net::TcpListener, task::AbortHandle, time::sleep};

use crate::{
    accounts::{Account, Content},
    filters::has,
    pool::Ledger,
    rpc_node::{
        blocks::BlockLedger,
        provider::{Gateway, Verdict},
        rendered::Rendered,
        wire::{Call, Condition, Reading},
    },
    scripted_chain::{ChainRecord, ScriptedChain, State as Accounts},
};

/// Balance of accounts that are placed without one, lamports: rent-exempt, whatever they hold.
const RENT_EXEMPT: u64 = 10_000_000;

/// Error code of a node that does not want to answer.
const UNHEALTHY: i64 = -32005;

/// Time between the first half of an answer and the end of its connection.
const BREAKING_OFF: Duration = Duration::from_millis(5);

/// Error code and text of a provider that does not want to send so long a list, as one of them words it.
const TOO_LONG: (i64, &str) = (
    -32600,
    "Request deprioritized due to number of accounts requested. Slow down requests or add filters to narrow down results",
);

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
    /// Calls that demand no slot, by method.
    counts: HashMap<String, usize>,
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
        gateway.map_or_else(ProviderCounts::default, |gateway| lock(&gateway).counts)
    }

    /// Calls that the node of a chain has taken so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.asked.play().calls.clone()
    }

    /// How often a method was called since the last [`RpcNode::forget_calls`]. Calls that demand a slot do not count:
    /// those are the market's own reading.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.asked.play().counts.get(method).copied().unwrap_or(0)
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

/// A call as it is sent. What is not looked at stays text: the node shares the machine with what is measured.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Vec<&'a RawValue>,
}

/// How a call wants to be answered.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestConfig {
    min_context_slot: Option<u64>,
}

impl Request<'_> {
    fn min_slot(&self) -> Option<u64> {
        let config = self.params.last()?.get();
        serde_json::from_str::<RequestConfig>(config)
            .ok()?
            .min_context_slot
    }

    fn params(&self) -> Value {
        let params = self.params.iter();
        let params = params.map(|param| serde_json::from_str(param.get()).unwrap_or_default());
        Value::Array(params.collect())
    }
}

async fn answer(State(node): State<Arc<Asked>>, body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let lists = request.method == "getProgramAccounts";
    let reads_accounts = lists || request.method == "getMultipleAccounts";
    let Some(gateway) = node.gateway().filter(|_| reads_accounts) else {
        return answer_of_node(&node, &request).await;
    };
    let verdict = lock(&gateway).judge(lists);
    match verdict {
        Verdict::Refused(pause, retry_after) => {
            sleep(pause).await;
            too_many_requests(retry_after)
        }
        Verdict::Passed { delay, drops } => {
            let _under_way = UnderWay(gateway);
            sleep(delay).await;
            let answer = answer_of_node(&node, &request).await;
            if drops { broken(answer).await } else { answer }
        }
    }
}

/// A call that a provider has let through. Ends with the call, also when the client goes before.
struct UnderWay(Arc<Mutex<Gateway>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.0).ended();
    }
}

fn too_many_requests(retry_after: Option<&'static str>) -> Response {
    let refusal = (StatusCode::TOO_MANY_REQUESTS, "Too Many Requests");
    match retry_after {
        Some(seconds) => ([(header::RETRY_AFTER, seconds)], refusal).into_response(),
        None => refusal.into_response(),
    }
}

/// The first half of an answer, and then the end of the connection.
async fn broken(answer: Response) -> Response {
    let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
    let body = body.unwrap_or_default();
    let half = body.slice(..body.len() / 2);
    ending(half)
}

async fn answer_of_node(node: &Asked, request: &Request<'_>) -> Response {
    let least = request.min_slot();
    let (fault, fails, delay) = node.note(request, least);
    let id = serde_json::from_str(request.id.get()).unwrap_or(Value::Null);
    match fault {
        Some(Fault::Http(status)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            return status.into_response();
        }
        Some(Fault::Refused(code, text)) => {
            return Json(wire::refusal(&id, code, &text, Value::Null)).into_response();
        }
        Some(Fault::HangsUp) => return ending(Bytes::from_static(b"{\"jsonrpc\": \"2.0\", ")),
        Some(Fault::Garbage) => return "<html>Bad Gateway</html>".into_response(),
        Some(Fault::Slow(pause)) => sleep(pause).await,
        None => {}
    }
    // The answer is that of the moment when the call came.
    let answer = if fails {
        Json(wire::refusal(
            &id,
            UNHEALTHY,
            "Node is unhealthy",
            Value::Null,
        ))
        .into_response()
    } else {
        node.answer(request, &id, least)
    };
    if !delay.is_zero() {
        sleep(delay).await;
    }
    answer
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

    fn note(&self, request: &Request<'_>, least: Option<u64>) -> (Option<Fault>, bool, Duration) {
        let mut play = self.play();
        if least.is_none() {
            *play.counts.entry(request.method.to_string()).or_default() += 1;
        }
        // A market asks for the newest slot all the time; what a script plays is meant for what it reads.
        let fault = (request.method != "getSlot").then(|| play.faults.pop_front());
        (fault.flatten(), play.fails, play.delay)
    }

    fn answer(&self, request: &Request<'_>, id: &Value, least: Option<u64>) -> Response {
        match lock(&self.blocks).answer(&request.method, &request.params()) {
            Ok(None) => {}
            Ok(Some(Ok(result))) => {
                return Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
            }
            Ok(Some(Err((code, text)))) => {
                return Json(wire::refusal(id, code, &text, Value::Null)).into_response();
            }
            Err(what) => return self.refuse(id, what),
        }
        match &self.source {
            Source::Rendered(rendered) => {
                let answer = lock(rendered).answer(request, least, |length| self.sends(length));
                match answer {
                    Ok(Some(body)) => {
                        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
                    }
                    Ok(None) => Json(too_long(id)).into_response(),
                    Err(what) => self.refuse(id, what),
                }
            }
            Source::Chain(chain) => match wire::parse(&request.method, &request.params()) {
                Ok(call) => Json(self.answer_of_chain(chain, id, &call)).into_response(),
                Err(what) => self.refuse(id, what),
            },
        }
    }

    fn refuse(&self, id: &Value, what: String) -> Response {
        let answer = Json(wire::unknown(id, &what)).into_response();
        self.play().unknown.push(what);
        answer
    }

    fn answer_of_chain(&self, chain: &ScriptedChain, id: &Value, call: &Call) -> Value {
        let record = chain.lock();
        let mut play = self.play();
        let reading = call.reading();
        let newest = record.node_slot(reading.processed);
        if newest < reading.min_slot {
            return wire::not_reached(id, newest);
        }
        let back = if play.drifts { play.calls.len() % 3 } else { 0 };
        play.calls.push(call.clone());
        drop(play);
        let slot = ancestor(&record, newest, back, reading.min_slot);
        let state = record.tree.state(slot);
        drop(record);
        match call {
            Call::Slot { .. } => json!({"jsonrpc": "2.0", "id": id, "result": slot}),
            Call::MultipleAccounts { keys, .. } => {
                let accounts = keys.iter().map(|key| one(&state, key, reading)).collect();
                wire::success(id, slot, accounts)
            }
            Call::ProgramAccounts {
                owner, conditions, ..
            } => {
                let list = owned(&state, owner, conditions, reading);
                if !self.sends(list.as_array().map_or(0, Vec::len)) {
                    return too_long(id);
                }
                wire::success(id, slot, list)
            }
        }
    }
}

/// The ancestor this many steps back, as far as it is young enough.
fn ancestor(record: &ChainRecord, slot: u64, steps: usize, min_slot: u64) -> u64 {
    let ancestry = std::iter::successors(Some(slot), |slot| record.tree.parent(*slot));
    ancestry
        .take(steps + 1)
        .take_while(|slot| *slot >= min_slot)
        .last()
        .unwrap_or(slot)
}

fn existing(content: &Content) -> Option<Account> {
    (*content != Content::Closed).then(|| content.account())
}

fn rendered(account: &Account, reading: Reading) -> Value {
    wire::account(&account.owner, account.lamports, &account.data, reading)
}

fn one(state: &Accounts, key: &Pubkey, reading: Reading) -> Value {
    let account = state.get(key).and_then(existing);
    account.map_or(Value::Null, |account| rendered(&account, reading))
}

fn owned(state: &Accounts, owner: &Pubkey, conditions: &[Condition], reading: Reading) -> Value {
    let holds = |account: &Account, condition: &Condition| match condition {
        Condition::Size(size) => u64::try_from(account.data.len()) == Ok(*size),
        Condition::Bytes(offset, bytes) => has(account, *offset, bytes),
    };
    let accounts = state
        .iter()
        .filter_map(|(key, content)| Some((key, existing(content)?)));
    accounts
        .filter(|(_, account)| account.owner == *owner)
        .filter(|(_, account)| conditions.iter().all(|c| holds(account, c)))
        .map(|(key, account)| {
            json!({"pubkey": key.to_string(), "account": rendered(&account, reading)})
        })
        .collect()
}

fn too_long(id: &Value) -> Value {
    let (code, text) = TOO_LONG;
    wire::refusal(id, code, text, Value::Null)
}

/// An answer that begins like this, and then the end of the connection, late enough for the client to have the beginning.
fn ending(begun: Bytes) -> Response {
    let broken = async {
        sleep(BREAKING_OFF).await;
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    };
    let begun = futures::stream::iter([Ok(begun)]);
    Body::from_stream(begun.chain(futures::stream::once(broken))).into_response()
}

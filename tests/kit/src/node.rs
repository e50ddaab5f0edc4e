//! A node's JSON-RPC over the played chain, with faults of its own.

use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::Bytes;
use serde_json::{Value, json};
use solana_pubkey::Pubkey;
use tokio::{net::TcpListener, task::AbortHandle, time::sleep};

use crate::{
    accounts::{Account, Content},
    chain,
    filters::has,
    rpc::{self, Call, Condition, Reading},
    world::{Shared, World},
};

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

/// The node. Dropping it ends it.
pub struct Node {
    address: SocketAddr,
    shared: Arc<Served>,
    serving: AbortHandle,
}

struct Served {
    world: Shared,
    play: Mutex<Play>,
}

#[derive(Default)]
struct Play {
    faults: VecDeque<Fault>,
    /// Whether calls are answered at different slots.
    drifts: bool,
    /// Calls taken.
    calls: Vec<Call>,
    /// Calls not understood.
    unknown: Vec<String>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Node {
    /// A node of this world.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(world: Shared) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Served {
            world,
            play: Mutex::default(),
        });
        let app = Router::new()
            .route("/", post(answer))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum::serve(listener, app)
                .await
                .expect("the port stays bound");
        });
        Ok(Self {
            address,
            shared,
            serving: serving.abort_handle(),
        })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Has the next calls go wrong, one after the other.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.play().faults.extend(faults);
    }

    /// Forgets faults that no call has met.
    pub fn heal(&self) {
        self.shared.play().faults.clear();
    }

    /// Whether every call is answered at another slot.
    pub fn drift(&self, drifts: bool) {
        self.shared.play().drifts = drifts;
    }

    /// Calls taken so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.shared.play().calls.clone()
    }

    /// Calls that were not understood.
    #[must_use]
    pub fn not_understood(&self) -> Vec<String> {
        self.shared.play().unknown.clone()
    }
}

impl Served {
    fn play(&self) -> std::sync::MutexGuard<'_, Play> {
        self.play.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, id: &Value, call: &Call) -> Value {
        let world = self.world.lock();
        let mut play = self.play();
        let reading = call.reading();
        let newest = world.node_slot(reading.processed);
        if newest < reading.min_slot {
            return rpc::not_reached(id, newest);
        }
        let back = if play.drifts { play.calls.len() % 3 } else { 0 };
        play.calls.push(call.clone());
        drop(play);
        let slot = ancestor(&world, newest, back, reading.min_slot);
        let state = world.chain.state(slot);
        drop(world);
        match call {
            Call::Slot { .. } => json!({"jsonrpc": "2.0", "id": id, "result": slot}),
            Call::MultipleAccounts { keys, .. } => {
                let accounts = keys.iter().map(|key| one(&state, key, reading)).collect();
                rpc::success(id, slot, accounts)
            }
            Call::ProgramAccounts {
                owner, conditions, ..
            } => rpc::success(id, slot, owned(&state, owner, conditions, reading)),
        }
    }
}

/// The ancestor this many steps back, as far as it is young enough.
fn ancestor(world: &World, slot: u64, steps: usize, min_slot: u64) -> u64 {
    let line = std::iter::successors(Some(slot), |slot| world.chain.parent(*slot));
    line.take(steps + 1)
        .take_while(|slot| *slot >= min_slot)
        .last()
        .unwrap_or(slot)
}

fn existing(content: &Content) -> Option<Account> {
    (*content != Content::Closed).then(|| content.account())
}

fn told(account: &Account, reading: Reading) -> Value {
    rpc::account(&account.owner, account.lamports, &account.data, reading)
}

fn one(state: &chain::State, key: &Pubkey, reading: Reading) -> Value {
    let account = state.get(key).and_then(existing);
    account.map_or(Value::Null, |account| told(&account, reading))
}

fn owned(
    state: &chain::State,
    owner: &Pubkey,
    conditions: &[Condition],
    reading: Reading,
) -> Value {
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
        .map(
            |(key, account)| json!({"pubkey": key.to_string(), "account": told(&account, reading)}),
        )
        .collect()
}

async fn answer(State(node): State<Arc<Served>>, Json(call): Json<Value>) -> Response {
    let fault = node.play().faults.pop_front();
    let id = &call["id"];
    match fault {
        Some(Fault::Http(status)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            return status.into_response();
        }
        Some(Fault::Refused(code, text)) => {
            return Json(rpc::refusal(id, code, &text, Value::Null)).into_response();
        }
        Some(Fault::HangsUp) => return hang_up(),
        Some(Fault::Garbage) => return "<html>Bad Gateway</html>".into_response(),
        Some(Fault::Slow(pause)) => sleep(pause).await,
        None => {}
    }
    let method = call["method"].as_str().unwrap_or_default();
    let answer = match rpc::parse(method, &call["params"]) {
        Ok(call) => node.answer(id, &call),
        Err(what) => {
            node.play().unknown.push(what.clone());
            rpc::unknown(id, &what)
        }
    };
    Json(answer).into_response()
}

fn hang_up() -> Response {
    let begun: Result<Bytes, io::Error> = Ok(Bytes::from_static(b"{\"jsonrpc\": \"2.0\", "));
    let broken = Err(io::Error::from(io::ErrorKind::ConnectionReset));
    Body::from_stream(futures::stream::iter([begun, broken])).into_response()
}

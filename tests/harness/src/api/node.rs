//! A node that answers JSON-RPC from memory, at once or as slowly as wanted, and counts what it is asked.

use std::{borrow::Cow, collections::HashMap, net::Ipv4Addr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::post,
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use solana_hash::Hash;
use solana_pubkey::{Pubkey, pubkey};
use tokio::net::TcpListener;

use sluice_testkit::pool::Ledger;

/// Rent of the chain: 6,960 lamports a byte.
const RENT: (u64, f64) = (3_480, 2.0);

const RENT_SYSVAR: Pubkey = pubkey!("SysvarRent111111111111111111111111111111111");

/// An account.
#[derive(Clone, Debug)]
pub struct Account {
    /// The program that owns it.
    pub owner: Pubkey,
    /// Its lamports.
    pub lamports: u64,
    /// Its data.
    pub data: Vec<u8>,
}

/// Handle to the node; clones share it.
#[derive(Clone)]
pub struct Node(Arc<Mutex<Memory>>);

struct Memory {
    slot: u64,
    /// As JSON text, ready to be sent.
    accounts: HashMap<String, String>,
    pools: Vec<String>,
    calls: HashMap<String, usize>,
    delay: Duration,
    fails: bool,
}

impl Default for Node {
    fn default() -> Self {
        let node = Self(Arc::new(Mutex::new(Memory {
            slot: 0,
            accounts: HashMap::new(),
            pools: Vec::new(),
            calls: HashMap::new(),
            delay: Duration::ZERO,
            fails: false,
        })));
        let (lamports, threshold) = RENT;
        let data = [
            &lamports.to_le_bytes()[..],
            &threshold.to_le_bytes()[..],
            &[50],
        ];
        let rent = Account {
            owner: Pubkey::new_from_array([9; 32]),
            lamports: 1_009_200,
            data: data.concat(),
        };
        node.set(RENT_SYSVAR, Some(rent));
        node
    }
}

impl Ledger for Node {
    fn place(&mut self, address: Pubkey, owner: Pubkey, data: Vec<u8>) {
        let account = Account {
            owner,
            lamports: 10_000_000,
            data,
        };
        self.set(address, Some(account));
    }
}

impl Node {
    /// Replaces an account; `None` removes it.
    pub fn set(&self, address: Pubkey, account: Option<Account>) {
        let mut memory = self.0.lock();
        let key = address.to_string();
        let Some(account) = account else {
            memory.accounts.remove(&key);
            return;
        };
        let is_pool = account.data.starts_with(&cpmm::POOL_STATE_DISCRIMINATOR);
        if is_pool && !memory.pools.contains(&key) {
            memory.pools.push(key.clone());
        }
        let value = json!({
            "lamports": account.lamports,
            "data": [BASE64.encode(&account.data), "base64"],
            "owner": account.owner.to_string(),
            "executable": false,
            "rentEpoch": u64::MAX,
            "space": account.data.len(),
        });
        memory.accounts.insert(key, value.to_string());
    }

    /// Lets every later call wait this long before it is answered.
    pub fn delay(&self, delay: Duration) {
        self.0.lock().delay = delay;
    }

    /// Lets every later call fail.
    pub fn fail(&self, fails: bool) {
        self.0.lock().fails = fails;
    }

    /// How often a method was called since the last [`Node::forget_calls`]. Calls of the market's own reading do not
    /// count.
    #[must_use]
    pub fn calls(&self, method: &str) -> usize {
        self.0.lock().calls.get(method).copied().unwrap_or(0)
    }

    /// Starts counting anew.
    pub fn forget_calls(&self) {
        self.0.lock().calls.clear();
    }

    pub(super) fn slot(&self) -> u64 {
        self.0.lock().slot
    }

    pub(super) fn reach(&self, slot: u64) {
        self.0.lock().slot = slot;
    }

    pub(super) async fn serve(&self) -> anyhow::Result<String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let app = Router::new()
            .route("/", post(answer))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(url)
    }
}

impl Memory {
    /// The `value` of the result, as JSON text.
    fn answer(&self, call: &Call) -> Option<String> {
        match &*call.method {
            "getLatestBlockhash" => {
                // The height that belongs to a blockhash can be told from it.
                let mut bytes = [7; 32];
                bytes[..8].copy_from_slice(&self.slot.to_le_bytes());
                let value = json!({
                    "blockhash": Hash::new_from_array(bytes).to_string(),
                    "lastValidBlockHeight": self.slot + 150,
                });
                Some(value.to_string())
            }
            "getProgramAccounts" => {
                let pools = self.pools.iter().map(|pool| {
                    let account = &self.accounts[pool];
                    format!(r#"{{"pubkey":"{pool}","account":{account}}}"#)
                });
                Some(list(pools))
            }
            "getMultipleAccounts" => {
                let keys: Vec<&str> = serde_json::from_str(call.params.first()?.get()).ok()?;
                let account = |key| self.accounts.get(key).map_or("null", String::as_str);
                Some(list(keys.into_iter().map(account)))
            }
            _ => None,
        }
    }
}

fn list<S: AsRef<str>>(items: impl Iterator<Item = S>) -> String {
    let mut text = String::from("[");
    for (n, item) in items.enumerate() {
        if n > 0 {
            text.push(',');
        }
        text.push_str(item.as_ref());
    }
    text.push(']');
    text
}

/// A call. What is not looked at stays text: the node shares the machine with what is measured.
#[derive(Deserialize)]
struct Call<'a> {
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
struct CallConfig {
    min_context_slot: Option<u64>,
}

impl Call<'_> {
    /// The market reads at the slot that its stream demands; nobody else names one.
    fn least_slot(&self) -> Option<u64> {
        let config = self.params.get(1)?.get();
        serde_json::from_str::<CallConfig>(config)
            .ok()?
            .min_context_slot
    }
}

async fn answer(State(node): State<Node>, body: Bytes) -> Result<impl IntoResponse, StatusCode> {
    let call: Call = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let (delay, content) = {
        let mut memory = node.0.lock();
        let least = call.least_slot();
        if least.is_none() {
            *memory.calls.entry(call.method.to_string()).or_default() += 1;
        }
        let slot = memory.slot;
        let content = if least.is_some_and(|least| least > slot) {
            error(
                -32016,
                "Minimum context slot has not been reached",
                &json!({ "contextSlot": slot }),
            )
        } else if memory.fails {
            error(-32005, "Node is unhealthy", &Value::Null)
        } else {
            memory.answer(&call).map_or_else(
                || error(-32601, "Method not found", &Value::Null),
                |value| format!(r#""result":{{"context":{{"slot":{slot}}},"value":{value}}}"#),
            )
        };
        (memory.delay, content)
    };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let text = format!(r#"{{"jsonrpc":"2.0","id":{},{content}}}"#, call.id);
    Ok(([(header::CONTENT_TYPE, "application/json")], text))
}

fn error(code: i64, message: &str, data: &Value) -> String {
    let error = json!({ "code": code, "message": message, "data": data });
    format!(r#""error":{error}"#)
}

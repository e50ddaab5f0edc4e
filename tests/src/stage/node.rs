//! A node that answers JSON-RPC from memory, at once or as slowly as wanted, and counts what it is asked.

use std::{collections::HashMap, net::Ipv4Addr, sync::Arc, time::Duration};

use axum::{Json, Router, extract::State, routing::post};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use parking_lot::Mutex;
use serde_json::{Value, json};
use solana_hash::Hash;
use solana_pubkey::{Pubkey, pubkey};
use tokio::net::TcpListener;

use crate::pool::Ledger;

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
    accounts: HashMap<String, Value>,
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
        memory.accounts.insert(key, value);
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
    fn answer(&mut self, method: &str, call: &Value) -> Option<Value> {
        let context = json!({ "slot": self.slot });
        let value = match method {
            "getLatestBlockhash" => {
                // The height that belongs to a blockhash can be told from it.
                let mut bytes = [7; 32];
                bytes[..8].copy_from_slice(&self.slot.to_le_bytes());
                json!({
                    "blockhash": Hash::new_from_array(bytes).to_string(),
                    "lastValidBlockHeight": self.slot + 150,
                })
            }
            "getProgramAccounts" => self
                .pools
                .iter()
                .map(|pool| json!({ "pubkey": pool, "account": self.accounts[pool] }))
                .collect(),
            "getMultipleAccounts" => call["params"][0]
                .as_array()?
                .iter()
                .map(|key| self.accounts.get(key.as_str()?).cloned())
                .map(Option::unwrap_or_default)
                .collect(),
            _ => return None,
        };
        Some(json!({ "context": context, "value": value }))
    }
}

async fn answer(State(node): State<Node>, Json(call): Json<Value>) -> Json<Value> {
    let (delay, answer) = {
        let mut memory = node.0.lock();
        let method = call["method"].as_str().unwrap_or_default();
        // The market reads at the slot that its stream demands; nobody else names one.
        let least = call["params"][1]["minContextSlot"].as_u64();
        if least.is_none() {
            *memory.calls.entry(method.to_owned()).or_default() += 1;
        }
        let answer = if least.is_some_and(|least| least > memory.slot) {
            Err(
                json!({ "code": -32016, "message": "Minimum context slot has not been reached",
                "data": { "contextSlot": memory.slot } }),
            )
        } else if memory.fails {
            Err(json!({ "code": -32005, "message": "Node is unhealthy" }))
        } else {
            let unknown = json!({ "code": -32601, "message": "Method not found" });
            memory.answer(method, &call).ok_or(unknown)
        };
        (memory.delay, answer)
    };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let (name, content) = match answer {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    Json(json!({ "jsonrpc": "2.0", "id": call["id"], name: content }))
}

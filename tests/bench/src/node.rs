//! A node that holds a chain of any size, every account rendered beforehand: what it costs to answer must not be part
//! of what is measured.

use std::{
    collections::HashMap,
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::Value;
use sluice_chain_types::RawAccount;
use solana_pubkey::Pubkey;
use tokio::net::TcpListener;

use sluice_testkit::rpc::{self, Call, Reading};

/// Largest piece of the list of all pools that is handed to the socket at once, bytes.
const PIECE: usize = 256 * 1024;

/// The node.
pub struct Node {
    slot: AtomicU64,
    /// Accounts as nodes tell them, by address.
    accounts: HashMap<Pubkey, String>,
    /// The list of all pools, without its context.
    pools: Bytes,
}

impl Node {
    /// Renders these accounts.
    #[must_use]
    pub fn holding(accounts: impl Iterator<Item = RawAccount>) -> Arc<Self> {
        let mut rendered = HashMap::new();
        let mut pools = String::from("[");
        for account in accounts {
            let RawAccount {
                pubkey,
                owner,
                lamports,
                data,
            } = account;
            let text = rpc::account(&owner, lamports, &data, Reading::default()).to_string();
            if data.starts_with(&cpmm::POOL_STATE_DISCRIMINATOR) {
                let comma = if pools.len() > 1 { "," } else { "" };
                pools.push_str(comma);
                pools.push_str(&format!(r#"{{"pubkey":"{pubkey}","account":{text}}}"#));
            }
            rendered.insert(pubkey, text);
        }
        pools.push(']');
        Arc::new(Self {
            slot: AtomicU64::new(0),
            accounts: rendered,
            pools: pools.into(),
        })
    }

    /// The node is confirmed up to this slot.
    pub fn reach(&self, slot: u64) {
        self.slot.store(slot, Ordering::Relaxed);
    }

    /// Serves until the runtime ends; returns the address.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn serve(self: Arc<Self>) -> io::Result<String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let app = Router::new().route("/", post(answer)).with_state(self);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(url)
    }

    fn answer(&self, id: &Value, call: &Call) -> Response {
        let slot = self.slot.load(Ordering::Relaxed);
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"context":{{"slot":{slot}}},"value":"#
        );
        let tail = Bytes::from_static(b"}}");
        if slot < call.reading().min_slot {
            return json(Body::from(rpc::not_reached(id, slot).to_string()));
        }
        match call {
            Call::Slot { .. } => json(Body::from(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{slot}}}"#
            ))),
            Call::MultipleAccounts { keys, .. } => {
                let accounts: Vec<&str> = keys
                    .iter()
                    .map(|key| self.accounts.get(key).map_or("null", String::as_str))
                    .collect();
                json(Body::from(format!("{head}[{}]}}}}", accounts.join(","))))
            }
            // Only pools are ever listed; see `faults` for a node that takes filters at their word.
            Call::ProgramAccounts { .. } => {
                let pieces = (0..self.pools.len()).step_by(PIECE).map(|at| {
                    let end = (at + PIECE).min(self.pools.len());
                    self.pools.slice(at..end)
                });
                let all: Vec<Bytes> = std::iter::once(Bytes::from(head))
                    .chain(pieces)
                    .chain([tail])
                    .collect();
                let pieces = all.into_iter().map(io::Result::Ok);
                json(Body::from_stream(futures::stream::iter(pieces)))
            }
        }
    }
}

fn json(body: Body) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

async fn answer(State(node): State<Arc<Node>>, body: Bytes) -> Response {
    let call: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = call["method"].as_str().unwrap_or_default();
    match rpc::parse(method, &call["params"]) {
        Ok(parsed) => node.answer(&call["id"], &parsed),
        Err(what) => json(Body::from(rpc::unknown(&call["id"], &what).to_string())),
    }
}

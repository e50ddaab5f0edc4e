//! Reads account snapshots by RPC: what the stream does not report, because it reports changes only.
//!
//! The calls are made here, on a plain HTTP client, and not through the cluster's RPC client, because
//! of their size: a response of hundreds of thousands of accounts is decoded straight from its bytes,
//! where a tree of JSON values would take several times its size in memory.

mod wire;

use std::{collections::HashSet, thread, time::Duration};

use futures::{StreamExt, stream};
use serde_json::{Value, json};
use solana_pubkey::Pubkey;
use tokio::{
    runtime,
    sync::{mpsc, oneshot},
};
use url::Url;

use crate::{
    account_snapshot::AccountSnapshot, decoded_account::DecodedAccount, dependencies::dependencies,
};

/// Time for one call. The list of all pools is by far the longest response: hundreds of megabytes on
/// mainnet.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Most accounts that nodes return from one `getMultipleAccounts`.
const MAX_ACCOUNTS_PER_CALL: usize = 100;

/// Calls under way at a time: enough to hide the round trip, few enough for the rate limits of
/// shared nodes.
const PARALLEL_CALLS: usize = 8;

/// Pause before asking again a node that has not reached the slot yet: half a slot.
const NOT_REACHED_PAUSE: Duration = Duration::from_millis(200);

/// Times to ask a node that has not reached the slot: 30 seconds, the delay after which finalized
/// slots would have followed as well.
const NOT_REACHED_RETRIES: u32 = 150;

/// Calls after which progress is logged.
const CALLS_PER_PROGRESS_LINE: usize = 100;

/// An RPC call for the snapshot failed. The texts name no address: it may carry a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SnapshotError {
    /// The node answered with an error.
    #[error("{method} was refused: {message}")]
    Refused {
        /// RPC method.
        method: &'static str,
        /// The node's text.
        message: String,
    },
    /// The node did not answer.
    #[error("{method} got no answer: {reason}")]
    Unreachable {
        /// RPC method.
        method: &'static str,
        /// What went wrong on the way.
        reason: String,
    },
    /// The response was not what the method returns.
    #[error("{method} returned {what}")]
    Malformed {
        /// RPC method.
        method: &'static str,
        /// What was wrong.
        what: String,
    },
    /// The node stayed behind the stream.
    #[error("{method}: the node did not reach slot {slot} in time")]
    Behind {
        /// RPC method.
        method: &'static str,
        /// The slot.
        slot: u64,
    },
}

/// Reads snapshots; clones share the connections.
///
/// Everything is read at commitment confirmed. A processed response could be of a fork that is
/// abandoned later without the stream ever having followed it, and of a slot that is not complete; a
/// confirmed one is neither.
#[derive(Clone)]
pub(crate) struct SnapshotReader {
    client: reqwest::Client,
    url: Url,
}

/// A call and what is expected of it.
struct Call {
    method: &'static str,
    params: Value,
    min_slot: u64,
}

impl SnapshotReader {
    pub(crate) fn new(url: Url) -> Self {
        Self {
            client: reqwest::Client::new(),
            url,
        }
    }

    /// All pools, all their dependencies and the clock, as of `min_slot` or later; each snapshot goes to
    /// `snapshots` as it comes.
    ///
    /// It is read on a thread of its own, which ends with it: decoding hundreds of megabytes must not hold up
    /// requests, and the memory that only this took is given back with the thread. Dropping the future ends both.
    pub(crate) async fn everything(
        &self,
        min_slot: u64,
        snapshots: mpsc::Sender<AccountSnapshot>,
    ) -> Result<(), SnapshotError> {
        // Connections belong to the runtime that opened them.
        let reader = Self::new(self.url.clone());
        let (mut done, result) = oneshot::channel();
        let gone = |reason: String| SnapshotError::Unreachable {
            method: "getProgramAccounts",
            reason,
        };
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| gone(error.to_string()))?;
        let reading = move || {
            runtime.block_on(async {
                let read = tokio::select! {
                    read = reader.read_everything(min_slot, &snapshots) => read,
                    () = done.closed() => return,
                };
                // The caller may be gone by now.
                let _ = done.send(read);
            });
        };
        let thread = thread::Builder::new().name("snapshot".to_owned());
        let thread = thread.spawn(reading);
        thread.map_err(|error| gone(error.to_string()))?;
        let result = result.await;
        result.map_err(|_| gone("the thread that read it broke off".to_owned()))?
    }

    async fn read_everything(
        &self,
        min_slot: u64,
        snapshots: &mpsc::Sender<AccountSnapshot>,
    ) -> Result<(), SnapshotError> {
        let pools = self.pools(min_slot).await?;
        let mut keys = HashSet::from([cpmm::ids::CLOCK]);
        for (_, account) in &pools.accounts {
            if let DecodedAccount::Pool(pool) = account {
                keys.extend(dependencies(pool));
            }
        }
        tracing::info!(
            pools = pools.accounts.len(),
            accounts = keys.len(),
            "pools listed; reading their accounts"
        );
        send(snapshots, pools).await;
        let keys: Vec<Pubkey> = keys.into_iter().collect();
        self.accounts(&keys, min_slot, snapshots).await
    }

    /// These accounts, as of `min_slot` or later; each snapshot goes to `snapshots` as it comes.
    pub(crate) async fn accounts(
        &self,
        keys: &[Pubkey],
        min_slot: u64,
        snapshots: &mpsc::Sender<AccountSnapshot>,
    ) -> Result<(), SnapshotError> {
        let calls = keys.len().div_ceil(MAX_ACCOUNTS_PER_CALL);
        // Owned, because a closure over borrowed chunks is not general enough for a spawned task.
        let chunks: Vec<Vec<Pubkey>> = keys
            .chunks(MAX_ACCOUNTS_PER_CALL)
            .map(<[Pubkey]>::to_vec)
            .collect();
        let mut chunks = stream::iter(chunks)
            .map(|chunk| self.chunk(chunk, min_slot))
            .buffer_unordered(PARALLEL_CALLS)
            .enumerate();
        while let Some((index, snapshot)) = chunks.next().await {
            send(snapshots, snapshot?).await;
            let done = index + 1;
            if done.is_multiple_of(CALLS_PER_PROGRESS_LINE) {
                tracing::info!(done, of = calls, "reading accounts");
            }
        }
        Ok(())
    }

    async fn pools(&self, min_slot: u64) -> Result<AccountSnapshot, SnapshotError> {
        let mut config = config(min_slot);
        let discriminator = bs58::encode(cpmm::POOL_STATE_DISCRIMINATOR).into_string();
        config["withContext"] = json!(true);
        config["filters"] = json!([
            { "dataSize": cpmm::POOL_STATE_LEN },
            { "memcmp": { "offset": 0, "bytes": discriminator } },
        ]);
        let call = Call {
            method: "getProgramAccounts",
            params: json!([cpmm::ids::PROGRAM_ID.to_string(), config]),
            min_slot,
        };
        self.read(&call, wire::program_accounts).await
    }

    async fn chunk(
        &self,
        keys: Vec<Pubkey>,
        min_slot: u64,
    ) -> Result<AccountSnapshot, SnapshotError> {
        let names: Vec<String> = keys.iter().map(Pubkey::to_string).collect();
        let call = Call {
            method: "getMultipleAccounts",
            params: json!([names, config(min_slot)]),
            min_slot,
        };
        self.read(&call, |body| wire::multiple_accounts(body, &keys))
            .await
    }

    /// Makes a call until the node has reached the slot it must answer for.
    async fn read(
        &self,
        call: &Call,
        decode: impl Fn(&[u8]) -> Result<AccountSnapshot, wire::Fault>,
    ) -> Result<AccountSnapshot, SnapshotError> {
        let (method, slot) = (call.method, call.min_slot);
        for _ in 0..NOT_REACHED_RETRIES {
            let body = self.call(call).await?;
            match decode(&body) {
                Ok(snapshot) if snapshot.context_slot >= slot => return Ok(snapshot),
                Ok(_) | Err(wire::Fault::NotReached) => {
                    tokio::time::sleep(NOT_REACHED_PAUSE).await;
                }
                Err(wire::Fault::Refused(message)) => {
                    return Err(SnapshotError::Refused { method, message });
                }
                Err(wire::Fault::Malformed(what)) => {
                    return Err(SnapshotError::Malformed { method, what });
                }
            }
        }
        Err(SnapshotError::Behind { method, slot })
    }

    async fn call(&self, call: &Call) -> Result<Vec<u8>, SnapshotError> {
        let request = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": call.method,
            "params": call.params,
        });
        let sending = self
            .client
            .post(self.url.clone())
            .timeout(CALL_TIMEOUT)
            .json(&request);
        let unreachable = |error: reqwest::Error| SnapshotError::Unreachable {
            method: call.method,
            reason: error.without_url().to_string(),
        };
        let response = sending
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .map_err(unreachable)?;
        let body = response.bytes().await.map_err(unreachable)?;
        Ok(body.into())
    }
}

/// Sending fails only when the session that reads is gone, and then the snapshot is of no use.
async fn send(snapshots: &mpsc::Sender<AccountSnapshot>, snapshot: AccountSnapshot) {
    let _ = snapshots.send(snapshot).await;
}

fn config(min_slot: u64) -> Value {
    json!({
        "encoding": "base64",
        "commitment": "confirmed",
        "minContextSlot": min_slot,
    })
}

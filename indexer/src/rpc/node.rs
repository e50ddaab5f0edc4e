//! Node: calls its JSON-RPC at a bounded rate, and repeats what failed on the way.
//!
//! Texts of errors name no address: it may carry a key.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{StatusCode, header::RETRY_AFTER};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use service_kit::Backoff;
use sluice_chain_types::Commitment;
use sluice_geyser::AccountUpdate;
use solana_pubkey::Pubkey;
use thiserror::Error;
use tokio::{
    sync::Mutex,
    task::{JoinHandle, spawn, spawn_blocking},
    time::{Instant, Interval, MissedTickBehavior, interval, sleep},
};
use url::Url;

use super::{
    block::{Block, BlockError, WireBlock},
    refusal::Refusal,
    response::{self, BodyError, error_of, seconds},
};

/// Highest version of transactions that is understood.
const MAX_TRANSACTION_VERSION: u8 = 1;

/// How long calls may fail in a row before the node is given up: longer than it takes a node to restart behind a
/// provider's balancer, short enough that live events do not wait for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Blocks that are read ahead, so that the round trip to the node does not bound the rate: at 100 ms each this still
/// gives eighty a second. Each may take ten megabytes until it is converted.
const READ_AHEAD: usize = 8;

/// Slots of one `getBlocks`: nodes take up to 500,000, many providers far fewer.
const SLOTS_PER_LIST: u64 = 1_000;

/// Most accounts that nodes return from one `getMultipleAccounts`.
const MAX_ACCOUNTS_PER_CALL: usize = 100;

/// Longest pause that is taken from a `Retry-After`.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why a node did not answer.
#[derive(Debug, Error)]
pub enum NodeError {
    /// It refused for a reason that asking again does not change.
    #[error("{method} was refused: {refusal:?}")]
    Refused {
        /// RPC method.
        method: &'static str,
        /// Why.
        refusal: Refusal,
    },
    /// It did not answer in time, however often it was asked.
    #[error("{method} got no answer for {} s: {reason}", PATIENCE.as_secs())]
    Unreachable {
        /// RPC method.
        method: &'static str,
        /// What went wrong last.
        reason: String,
    },
    /// Its block is not what the method returns.
    #[error("the block of slot {slot} is not understood: {reason}")]
    Block {
        /// The slot.
        slot: u64,
        /// Why.
        reason: BlockError,
    },
}

/// What a node says of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its block.
    Block(Block),
    /// None, as it seems; the next block's parent shows whether that is true.
    Skipped,
    /// The node does not have it, or not in a form that is understood.
    Missing,
}

/// A node; clones share the rate.
#[derive(Clone, Debug)]
pub struct Node {
    client: reqwest::Client,
    url: Url,
    timeout: Duration,
    pace: Arc<Mutex<Interval>>,
}

/// What went wrong with one call.
enum Failure {
    /// It may work later, perhaps after a pause that was asked for.
    Passing(String, Option<Duration>),
    Refused(Refusal),
}

/// An answer that is no error.
#[derive(Deserialize)]
struct Response<T> {
    result: Option<T>,
}

#[derive(Deserialize)]
struct Contextual<T> {
    context: Context,
    value: T,
}

#[derive(Deserialize)]
struct Context {
    slot: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAccount {
    lamports: u64,
    owner: String,
    executable: bool,
    rent_epoch: u64,
    /// The bytes, and their encoding.
    data: (String, String),
}

/// An account in a list, as far as it is read.
#[derive(Deserialize)]
struct WireAddress {
    pubkey: String,
}

impl Node {
    /// The node at `url`, which is called at most this many times a second. A call ends after `timeout`.
    #[must_use]
    pub fn new(url: Url, calls_per_second: std::num::NonZeroU32, timeout: Duration) -> Self {
        let mut pace = interval(Duration::from_secs(1) / calls_per_second.get());
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            client: reqwest::Client::new(),
            url,
            timeout,
            pace: Arc::new(Mutex::new(pace)),
        }
    }

    /// The newest slot of a commitment.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn slot(&self, commitment: Commitment) -> Result<u64, NodeError> {
        let config = json!([{ "commitment": commitment.name() }]);
        self.call("getSlot", &config).await
    }

    /// The first slot whose block the node still has.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn first_available_block(&self) -> Result<u64, NodeError> {
        self.call("getFirstAvailableBlock", &json!([])).await
    }

    /// The slots from `first` that have a confirmed block, `last` included, as far as one call lists them; and the last
    /// slot that it covers.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn slots_with_blocks(
        &self,
        first: u64,
        last: u64,
    ) -> Result<(Vec<u64>, u64), NodeError> {
        let covered = last.min(first.saturating_add(SLOTS_PER_LIST - 1));
        let params = json!([first, covered, { "commitment": "confirmed" }]);
        let slots: Vec<u64> = self.call("getBlocks", &params).await?;
        Ok((slots, covered))
    }

    /// Reads the blocks of `slots`, one after the other and some ahead; transactions as `wanted` by the addresses that they
    /// mention and the owners of their token accounts.
    pub fn blocks<W>(&self, slots: Vec<u64>, wanted: Arc<W>) -> Blocks<W>
    where
        W: Fn(&[Pubkey], &[Pubkey]) -> bool + Send + Sync + 'static,
    {
        Blocks {
            node: self.clone(),
            wanted,
            slots: slots.into(),
            ahead: VecDeque::new(),
        }
    }

    /// What the node says of a slot, once that is confirmed.
    async fn block<W>(&self, slot: u64, wanted: Arc<W>) -> Result<Answer, NodeError>
    where
        W: Fn(&[Pubkey], &[Pubkey]) -> bool + Send + Sync + 'static,
    {
        const METHOD: &str = "getBlock";
        let params = json!([slot, {
            "commitment": "confirmed",
            "encoding": "json",
            "transactionDetails": "full",
            "rewards": false,
            "maxSupportedTransactionVersion": MAX_TRANSACTION_VERSION,
        }]);
        let body = self.call_raw(METHOD, &params).await;
        let body = match body {
            Ok(body) => body,
            Err(NodeError::Refused { refusal, method }) => {
                return match refusal {
                    Refusal::Skipped => Ok(Answer::Skipped),
                    Refusal::BeforeLedger(_) | Refusal::UnsupportedVersion => Ok(Answer::Missing),
                    refusal => Err(NodeError::Refused { method, refusal }),
                };
            }
            Err(error) => return Err(error),
        };
        // Some tens of milliseconds for a full block, which the other tasks need not wait for.
        let converting = spawn_blocking(move || convert(&body, slot, &*wanted));
        match converting.await {
            Ok(answer) => answer,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// These accounts at a commitment, each as if it had been written in the slot of the answer, which is not before
    /// `min_slot`. One that does not exist has no lamports.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn accounts(
        &self,
        keys: &[Pubkey],
        commitment: Commitment,
        min_slot: u64,
    ) -> Result<Vec<AccountUpdate>, NodeError> {
        const METHOD: &str = "getMultipleAccounts";
        let mut accounts = Vec::with_capacity(keys.len());
        for keys in keys.chunks(MAX_ACCOUNTS_PER_CALL) {
            let texts: Vec<_> = keys.iter().map(ToString::to_string).collect();
            let config = json!({
                "commitment": commitment.name(),
                "encoding": "base64",
                "minContextSlot": min_slot,
            });
            let params = json!([texts, config]);
            let answer: Contextual<Vec<Option<WireAccount>>> = self.call(METHOD, &params).await?;
            let malformed = |what: String| NodeError::Refused {
                method: METHOD,
                refusal: Refusal::Other(what),
            };
            if answer.value.len() != keys.len() {
                return Err(malformed(
                    "another number of accounts than asked for".to_owned(),
                ));
            }
            for (key, account) in keys.iter().zip(answer.value) {
                let absent = absent(answer.context.slot, *key);
                accounts.push(match account {
                    None => absent,
                    Some(account) => existing(absent, &account).map_err(malformed)?,
                });
            }
        }
        Ok(accounts)
    }

    /// The addresses of a program's confirmed accounts, and the slot of the answer, which is not before `min_slot`.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn program_accounts(
        &self,
        program: &Pubkey,
        min_slot: u64,
    ) -> Result<(u64, Vec<Pubkey>), NodeError> {
        const METHOD: &str = "getProgramAccounts";
        let config = json!({
            "commitment": Commitment::Confirmed.name(),
            "encoding": "base64",
            "dataSlice": {"offset": 0, "length": 0},
            "withContext": true,
            "minContextSlot": min_slot,
        });
        let params = json!([program.to_string(), config]);
        let answer: Contextual<Vec<WireAddress>> = self.call(METHOD, &params).await?;
        let addresses = answer.value.iter().map(|listed| listed.pubkey.parse());
        let addresses = addresses.collect::<Result<_, _>>();
        let malformed = |_| NodeError::Refused {
            method: METHOD,
            refusal: Refusal::Other("an address that is none".to_owned()),
        };
        Ok((answer.context.slot, addresses.map_err(malformed)?))
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &Value,
    ) -> Result<T, NodeError> {
        let body = self.call_raw(method, params).await?;
        let malformed = |reason: String| NodeError::Refused {
            method,
            refusal: Refusal::Other(reason),
        };
        let response: Response<T> =
            serde_json::from_slice(&body).map_err(|error| malformed(error.to_string()))?;
        response
            .result
            .ok_or_else(|| malformed("no result".to_owned()))
    }

    /// The answer to a call, which is no error. What fails on the way or passes is repeated, with growing pauses, until
    /// it has failed for [`PATIENCE`].
    async fn call_raw(&self, method: &'static str, params: &Value) -> Result<Vec<u8>, NodeError> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let began = Instant::now();
        let mut backoff = Backoff::new();
        loop {
            self.pace.lock().await.tick().await;
            let (reason, wanted) = match self.try_call(&request).await {
                Ok(body) => return Ok(body),
                Err(Failure::Refused(refusal)) => {
                    return Err(NodeError::Refused { method, refusal });
                }
                Err(Failure::Passing(reason, wanted)) => (reason, wanted),
            };
            if began.elapsed() > PATIENCE {
                return Err(NodeError::Unreachable { method, reason });
            }
            let pause = backoff.next_pause(rand::random());
            sleep(wanted.map_or(pause, |wanted| wanted.min(LONGEST_PAUSE).max(pause))).await;
        }
    }

    async fn try_call(&self, request: &Value) -> Result<Vec<u8>, Failure> {
        let passing =
            |error: reqwest::Error| Failure::Passing(error.without_url().to_string(), None);
        let response = self
            .client
            .post(self.url.clone())
            .timeout(self.timeout)
            .json(request)
            .send()
            .await
            .map_err(passing)?;
        let status = response.status();
        let wanted = response.headers().get(RETRY_AFTER).and_then(seconds);
        let body = response::body(response)
            .await
            .map_err(|error| match error {
                BodyError::TooLong(_) => Failure::Refused(Refusal::Other(error.to_string())),
                BodyError::Broken(error) => passing(error),
            })?;
        // Providers write errors with any status.
        match error_of(&body) {
            Ok(None) if status.is_success() => return Ok(body),
            Ok(Some(error)) => match Refusal::of(error) {
                Refusal::NotYet => {
                    return Err(Failure::Passing(
                        "the block is not there yet".to_owned(),
                        None,
                    ));
                }
                Refusal::Busy(reason) => return Err(Failure::Passing(reason, wanted)),
                refusal if status.is_success() => return Err(Failure::Refused(refusal)),
                _ => {}
            },
            _ => {}
        }
        let lasting = status.is_client_error()
            && !matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
            );
        if lasting {
            let text = format!("HTTP status {status}");
            return Err(Failure::Refused(Refusal::Other(text)));
        }
        Err(Failure::Passing(
            format!("HTTP status {status}, no JSON-RPC answer"),
            wanted,
        ))
    }
}

/// Blocks of a list of slots, in order.
#[derive(Debug)]
pub struct Blocks<W> {
    node: Node,
    wanted: Arc<W>,
    slots: VecDeque<u64>,
    ahead: VecDeque<(u64, Reading)>,
}

/// A block that is being read; dropping it ends that.
#[derive(Debug)]
struct Reading(JoinHandle<Result<Answer, NodeError>>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<W: Fn(&[Pubkey], &[Pubkey]) -> bool + Send + Sync + 'static> Blocks<W> {
    /// The next slot and what the node says of it; `None` after the last.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn next(&mut self) -> Result<Option<(u64, Answer)>, NodeError> {
        while self.ahead.len() < READ_AHEAD
            && let Some(slot) = self.slots.pop_front()
        {
            let (node, wanted) = (self.node.clone(), Arc::clone(&self.wanted));
            let reading = spawn(async move { node.block(slot, wanted).await });
            self.ahead.push_back((slot, Reading(reading)));
        }
        let Some((slot, mut reading)) = self.ahead.pop_front() else {
            return Ok(None);
        };
        match (&mut reading.0).await {
            Ok(answer) => Ok(Some((slot, answer?))),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

fn convert(
    body: &[u8],
    slot: u64,
    wanted: impl Fn(&[Pubkey], &[Pubkey]) -> bool,
) -> Result<Answer, NodeError> {
    #[derive(Deserialize)]
    struct Response<'a> {
        #[serde(borrow)]
        result: Option<WireBlock<'a>>,
    }
    let response: Response<'_> =
        serde_json::from_slice(body).map_err(|error| NodeError::Refused {
            method: "getBlock",
            refusal: Refusal::Other(error.to_string()),
        })?;
    let Some(block) = response.result else {
        return Ok(Answer::Missing);
    };
    match block.convert(slot, wanted) {
        Ok(block) => Ok(Answer::Block(block)),
        // Old ledgers keep blocks whose results are gone.
        Err(BlockError::WithoutResult) => Ok(Answer::Missing),
        Err(reason) => Err(NodeError::Block { slot, reason }),
    }
}

fn absent(slot: u64, pubkey: Pubkey) -> AccountUpdate {
    AccountUpdate {
        slot,
        pubkey,
        owner: Pubkey::default(),
        lamports: 0,
        executable: false,
        rent_epoch: 0,
        data: Vec::new().into(),
        write_version: 0,
        txn_signature: None,
        is_startup: false,
    }
}

fn existing(absent: AccountUpdate, account: &WireAccount) -> Result<AccountUpdate, String> {
    let (data, encoding) = &account.data;
    if encoding != "base64" {
        return Err(format!("an account in {encoding}"));
    }
    Ok(AccountUpdate {
        owner: account
            .owner
            .parse()
            .map_err(|error| format!("an owner: {error}"))?,
        lamports: account.lamports,
        executable: account.executable,
        rent_epoch: account.rent_epoch,
        data: STANDARD
            .decode(data)
            .map_err(|error| format!("data of an account: {error}"))?
            .into(),
        ..absent
    })
}

//! Account batcher: reads accounts for requests, of which those that wait at the same moment share a call.
//!
//! A busy API thus does not make a call for each: a call costs the API and the node several times what the rest of a
//! transaction costs.

use std::{sync::Arc, time::Duration};

use sluice_transaction::rent::Rent;
use solana_account_decoder_client_types::UiAccountEncoding;
use solana_commitment_config::CommitmentConfig;
use solana_pubkey::{Pubkey, pubkey};
use solana_rpc_client_api::config::RpcAccountInfoConfig;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    account::{HeldAccount, held},
    call::{Node, is_behind, malformed, until_reached},
};
use crate::error::ApiError;

/// Where the chain says what an account costs.
const RENT_SYSVAR: Pubkey = pubkey!("SysvarRent111111111111111111111111111111111");

/// Most accounts that nodes return from one `getMultipleAccounts`.
const MAX_ACCOUNTS_PER_CALL: usize = 100;

/// Accounts that most requests read: the wallet and its two token accounts.
const USUAL_KEYS: usize = 3;

/// Requests that share a call at most; one place is for the Rent sysvar, which they all need. Where requests read more
/// than usual, the last of them share another call.
const MAX_READS_PER_CALL: usize = (MAX_ACCOUNTS_PER_CALL - 1) / USUAL_KEYS;

/// Calls under way at a time. Together they read for 264 requests; more calls would only be more load on the node.
const PARALLEL_CALLS: usize = 8;

/// Requests that may wait for a call; more wait for a place.
const QUEUE: usize = 1_024;

type Accounts = (Vec<Option<HeldAccount>>, Rent);

struct Read {
    keys: Vec<Pubkey>,
    /// The oldest slot whose state is good enough.
    least_slot: u64,
    answer: oneshot::Sender<Result<Accounts, Failure>>,
}

/// Why a call gave nothing, for everybody who shared it.
#[derive(Clone, Copy)]
enum Failure {
    Timeout,
    /// The call has logged the cause.
    Failed,
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Timeout => Self::RpcTimeout,
            Failure::Failed => malformed("a shared getMultipleAccounts failed, see above"),
        }
    }
}

/// Queues the reads of requests for shared calls.
pub(super) struct AccountBatcher {
    queue: mpsc::Sender<Read>,
    deadline: Duration,
}

impl AccountBatcher {
    pub(super) fn start(node: Arc<Node>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let deadline = node.deadline;
        tokio::spawn(serve(node, waiting));
        Self { queue, deadline }
    }

    /// Reads these accounts, in their order, as of `least_slot` or later; `None` where there is none.
    pub(super) async fn read(
        &self,
        keys: Vec<Pubkey>,
        least_slot: u64,
    ) -> Result<Accounts, ApiError> {
        let (answer, answered) = oneshot::channel();
        let wait = async {
            let read = Read {
                keys,
                least_slot,
                answer,
            };
            if self.queue.send(read).await.is_err() {
                return Err(malformed("the reading of accounts has ended"));
            }
            match answered.await {
                Ok(accounts) => Ok(accounts?),
                Err(_) => Err(malformed("a reading of accounts was given up")),
            }
        };
        tokio::time::timeout(self.deadline, wait)
            .await
            .map_err(|_| ApiError::RpcTimeout)?
    }
}

async fn serve(node: Arc<Node>, mut waiting: mpsc::Receiver<Read>) {
    let mut calls = JoinSet::new();
    while let Some(mut batch) = collect_batch(&mut waiting, &mut calls).await {
        while !batch.is_empty() {
            let rest = batch.split_off(reads_of_one_call(&batch));
            let node = Arc::clone(&node);
            calls.spawn(async move { call(&node, batch).await });
            batch = rest;
        }
    }
}

/// How many of these reads, in their order, fit into one call. At least one.
fn reads_of_one_call(batch: &[Read]) -> usize {
    let mut keys = 1;
    let fits = batch.iter().take_while(|read| {
        keys += read.keys.len();
        keys <= MAX_ACCOUNTS_PER_CALL
    });
    fits.count().max(1)
}

/// Collects the reads of the next call, once there is a place for it; `None` when no more will come.
async fn collect_batch(
    waiting: &mut mpsc::Receiver<Read>,
    calls: &mut JoinSet<()>,
) -> Option<Vec<Read>> {
    /// How long a request waits for others to share its call with while another call is under way. A node that answers
    /// sooner than this has its next call waiting by then; with a slower one the wait is small beside the answer's.
    const LINGER: Duration = Duration::from_millis(1);

    /// How often everything that is ready to run goes before a call is made. Once lets in the requests that were parsed, the
    /// second time those that were being read.
    const YIELDS: usize = 2;

    let mut batch = Vec::new();
    if waiting.recv_many(&mut batch, MAX_READS_PER_CALL).await == 0 {
        return None;
    }
    // Ended calls are only cleared away: each has answered its readers.
    while calls.try_join_next().is_some() {}
    if !calls.is_empty() && batch.len() < MAX_READS_PER_CALL {
        let _ = tokio::time::timeout(LINGER, calls.join_next()).await;
    }
    // Whatever is ready to run goes first: on a busy machine those are requests about to ask, which then share this
    // call; on an idle one this takes no time.
    for _ in 0..YIELDS {
        tokio::task::yield_now().await;
    }
    while calls.len() >= PARALLEL_CALLS {
        calls.join_next().await;
    }
    while batch.len() < MAX_READS_PER_CALL {
        let Ok(read) = waiting.try_recv() else {
            break;
        };
        batch.push(read);
    }
    Some(batch)
}

async fn call(node: &Node, batch: Vec<Read>) {
    let keys = batch.iter().flat_map(|read| &read.keys).copied();
    let keys: Vec<Pubkey> = keys.chain([RENT_SYSVAR]).collect();
    let least_slot = batch.iter().map(|read| read.least_slot).max();
    match fetch(node, &keys, least_slot.unwrap_or(0)).await {
        Ok((mut accounts, rent)) => {
            for read in batch {
                let rest = accounts.split_off(read.keys.len().min(accounts.len()));
                // The request may have gone.
                let _ = read.answer.send(Ok((accounts, rent)));
                accounts = rest;
            }
        }
        Err(error) => {
            let failure = match error {
                ApiError::RpcTimeout => Failure::Timeout,
                other => {
                    let cause = std::error::Error::source(&other).map(ToString::to_string);
                    tracing::error!(cause, "getMultipleAccounts failed");
                    Failure::Failed
                }
            };
            for read in batch {
                let _ = read.answer.send(Err(failure));
            }
        }
    }
}

/// The accounts but the last, which is the Rent sysvar. Processed, because a swap is built on what the user sees. A node
/// that is behind is asked again until the deadline: of several behind one address the next may be ahead.
async fn fetch(node: &Node, keys: &[Pubkey], least_slot: u64) -> Result<Accounts, ApiError> {
    until_reached(node.deadline, || fetch_once(node, keys, least_slot)).await
}

/// The same from one call; `None` from a node that has not reached the slot.
async fn fetch_once(
    node: &Node,
    keys: &[Pubkey],
    least_slot: u64,
) -> Result<Option<Accounts>, ApiError> {
    let config = RpcAccountInfoConfig {
        encoding: Some(UiAccountEncoding::Base64),
        commitment: Some(CommitmentConfig::processed()),
        min_context_slot: (least_slot > 0).then_some(least_slot),
        ..RpcAccountInfoConfig::default()
    };
    let read = node.call("getMultipleAccounts", async |client| {
        let read = client.get_multiple_ui_accounts_with_config(keys, config);
        match read.await {
            Err(error) if is_behind(&error) => Ok(None),
            read => read.map(Some),
        }
    });
    let Some(read) = read.await? else {
        return Ok(None);
    };
    let mut found = read.value;
    if found.len() != keys.len() {
        return Err(malformed("another number of accounts than asked for"));
    }
    let rent = found.pop().flatten().as_ref().and_then(held);
    let rent = rent.and_then(|rent| Rent::decode(&rent.data));
    let rent = rent.ok_or_else(|| malformed("an unreadable Rent sysvar"))?;
    let accounts = found.iter().map(|account| match account {
        None => Ok(None),
        Some(account) => {
            let held = held(account).ok_or_else(|| malformed("an unreadable account"))?;
            Ok(Some(held))
        }
    });
    Ok(Some((accounts.collect::<Result<_, ApiError>>()?, rent)))
}

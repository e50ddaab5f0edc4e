//! Accounts read by RPC: what the stream cannot tell, because it only tells of changes.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use solana_account_decoder_client_types::{UiAccount, UiAccountEncoding};
use solana_commitment_config::CommitmentConfig;
use solana_pubkey::Pubkey;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::{
    client_error::{Error as ClientError, ErrorKind},
    config::{RpcAccountInfoConfig, RpcProgramAccountsConfig},
    custom_error::JSON_RPC_SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED,
    filter::{Memcmp, RpcFilterType},
    request::{RpcError, RpcRequest},
    response::{OptionalContext, RpcKeyedAccount},
};

use super::apply::{Batch, RawAccount};

/// Time for one call. The list of all pools is by far the longest answer: hundreds of megabytes on
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
pub(super) enum SnapshotError {
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
        reason: &'static str,
    },
    /// The answer was not what the method returns.
    #[error("{method} returned {what}")]
    Malformed {
        /// RPC method.
        method: &'static str,
        /// What was wrong.
        what: &'static str,
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

/// Reads snapshots; clones share the connection.
///
/// Everything is read at commitment confirmed. A processed answer could be of a branch that is
/// abandoned later without the stream ever having followed it; a confirmed one cannot.
#[derive(Clone)]
pub(super) struct Snapshots {
    client: Arc<RpcClient>,
}

impl Snapshots {
    pub(super) fn new(rpc_url: &str) -> Self {
        let client = RpcClient::new_with_timeout(rpc_url.to_owned(), CALL_TIMEOUT);
        Self {
            client: Arc::new(client),
        }
    }

    /// All pools, as of `min_slot` or later.
    pub(super) async fn pools(&self, min_slot: u64) -> Result<Batch, SnapshotError> {
        const METHOD: &str = "getProgramAccounts";
        let config = RpcProgramAccountsConfig {
            filters: Some(vec![
                RpcFilterType::DataSize(cpmm::POOL_STATE_LEN as u64),
                RpcFilterType::Memcmp(Memcmp::new_base58_encoded(
                    0,
                    &cpmm::POOL_STATE_DISCRIMINATOR,
                )),
            ]),
            account_config: account_config(min_slot),
            with_context: Some(true),
            sort_results: Some(false),
        };
        let params = json!([cpmm::ids::PROGRAM_ID.to_string(), config]);
        let answer = self
            .once_reached(METHOD, min_slot, || {
                self.client.send::<OptionalContext<Vec<RpcKeyedAccount>>>(
                    RpcRequest::GetProgramAccounts,
                    params.clone(),
                )
            })
            .await?;
        let OptionalContext::Context(answer) = answer else {
            return Err(SnapshotError::Malformed {
                method: METHOD,
                what: "no context",
            });
        };
        let accounts = answer
            .value
            .into_iter()
            .map(|keyed| {
                let pubkey = keyed.pubkey.parse().ok();
                pubkey
                    .zip(raw(&keyed.account))
                    .map(|(pubkey, account)| (pubkey, Some(account)))
            })
            .collect::<Option<_>>();
        batch(METHOD, answer.context.slot, accounts)
    }

    /// These accounts, as of `min_slot` or later; one batch for each call.
    pub(super) async fn accounts(
        &self,
        keys: Vec<Pubkey>,
        min_slot: u64,
    ) -> Result<Vec<Batch>, SnapshotError> {
        let calls = keys.len().div_ceil(MAX_ACCOUNTS_PER_CALL);
        let chunks: Vec<Vec<Pubkey>> = keys
            .chunks(MAX_ACCOUNTS_PER_CALL)
            .map(<[Pubkey]>::to_vec)
            .collect();
        stream::iter(chunks)
            .map(|chunk| self.chunk(chunk, min_slot))
            .buffer_unordered(PARALLEL_CALLS)
            .enumerate()
            .map(|(index, batch)| {
                let done = index.saturating_add(1);
                if done.is_multiple_of(CALLS_PER_PROGRESS_LINE) {
                    tracing::info!(done, of = calls, "reading accounts");
                }
                batch
            })
            .try_collect()
            .await
    }

    async fn chunk(&self, keys: Vec<Pubkey>, min_slot: u64) -> Result<Batch, SnapshotError> {
        const METHOD: &str = "getMultipleAccounts";
        let answer = self
            .once_reached(METHOD, min_slot, || {
                self.client
                    .get_multiple_ui_accounts_with_config(&keys, account_config(min_slot))
            })
            .await?;
        if answer.value.len() != keys.len() {
            return Err(SnapshotError::Malformed {
                method: METHOD,
                what: "too few accounts",
            });
        }
        let accounts = keys
            .iter()
            .zip(&answer.value)
            .map(|(key, account)| match account {
                None => Some((*key, None)),
                Some(account) => Some((*key, Some(raw(account)?))),
            })
            .collect::<Option<_>>();
        batch(METHOD, answer.context.slot, accounts)
    }

    /// Repeats a call until the node has reached the slot it must answer for.
    async fn once_reached<T, F>(
        &self,
        method: &'static str,
        min_slot: u64,
        call: impl Fn() -> F,
    ) -> Result<T, SnapshotError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        for _ in 0..NOT_REACHED_RETRIES {
            match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) if not_reached(&error) => tokio::time::sleep(NOT_REACHED_PAUSE).await,
                Err(error) => return Err(without_address(method, &error)),
            }
        }
        Err(SnapshotError::Behind {
            method,
            slot: min_slot,
        })
    }
}

fn account_config(min_slot: u64) -> RpcAccountInfoConfig {
    RpcAccountInfoConfig {
        encoding: Some(UiAccountEncoding::Base64Zstd),
        data_slice: None,
        commitment: Some(CommitmentConfig::confirmed()),
        min_context_slot: Some(min_slot),
    }
}

/// What one call read, unless one of its accounts could not be decoded.
fn batch(
    method: &'static str,
    context_slot: u64,
    accounts: Option<Vec<(Pubkey, Option<RawAccount>)>>,
) -> Result<Batch, SnapshotError> {
    let accounts = accounts.ok_or(SnapshotError::Malformed {
        method,
        what: "an unreadable account",
    })?;
    Ok(Batch {
        context_slot,
        accounts,
    })
}

fn raw(account: &UiAccount) -> Option<RawAccount> {
    Some(RawAccount {
        owner: account.owner.parse().ok()?,
        lamports: account.lamports,
        data: account.data.decode()?.into(),
    })
}

fn not_reached(error: &ClientError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::RpcError(RpcError::RpcResponseError {
            code: JSON_RPC_SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED,
            ..
        })
    )
}

fn without_address(method: &'static str, error: &ClientError) -> SnapshotError {
    let unreachable = |reason| SnapshotError::Unreachable { method, reason };
    match error.kind() {
        ErrorKind::RpcError(RpcError::RpcResponseError { code, message, .. }) => {
            SnapshotError::Refused {
                method,
                message: format!("{message} ({code})"),
            }
        }
        ErrorKind::RpcError(_) | ErrorKind::SerdeJson(_) => SnapshotError::Malformed {
            method,
            what: "an answer of another shape",
        },
        ErrorKind::Reqwest(error) if error.is_timeout() => unreachable("it took too long"),
        ErrorKind::Reqwest(error) if error.is_connect() => unreachable("no connection"),
        ErrorKind::Reqwest(error) if error.is_status() => unreachable("an HTTP error status"),
        _ => unreachable("the connection failed"),
    }
}

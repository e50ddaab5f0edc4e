//! The few things the API asks the cluster's RPC while a request waits: at most one round, because the blockhash is kept
//! fresh beside the requests, and all accounts of a request are read by one call.

mod account_batcher;
mod blockhash_cache;

use std::{sync::Arc, time::Duration};

use service_kit::CancellationToken;
use sluice_transaction::rent::Rent;
use solana_account_decoder_client_types::UiAccount;
use solana_commitment_config::CommitmentConfig;
use solana_pubkey::{Pubkey, pubkey};
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::{
    client_error::{Error as ClientError, ErrorKind},
    request::RpcError,
};

use self::{account_batcher::Reads, blockhash_cache::Latest};
use crate::error::ApiError;

pub use blockhash_cache::LatestBlockhash;

/// Where the chain says what an account costs.
const RENT_SYSVAR: Pubkey = pubkey!("SysvarRent111111111111111111111111111111111");

/// An account as a swap depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldAccount {
    /// The program that owns it.
    pub program: Pubkey,
    /// Its lamports.
    pub lamports: u64,
    /// Its data.
    pub data: Vec<u8>,
}

/// The accounts that a swap of one user depends on, of one moment.
#[derive(Clone, Debug)]
pub struct UserAccounts {
    /// Lamports of the wallet.
    pub lamports: u64,
    /// The account that pays; `None` when there is none yet.
    pub input: Option<HeldAccount>,
    /// The account that receives; `None` when there is none yet.
    pub output: Option<HeldAccount>,
    /// What the chain asks to keep an account.
    pub rent: Rent,
}

/// RPC client with a deadline on every call.
pub struct Rpc {
    client: Arc<RpcClient>,
    deadline: Duration,
    latest: Latest,
    reads: Reads,
}

impl Rpc {
    /// A client of the cluster at `url`; each call ends after `deadline`. Must be called inside a runtime, on which the
    /// reading of accounts goes on.
    #[must_use]
    pub fn new(url: &str, deadline: Duration) -> Self {
        let client = Arc::new(RpcClient::new_with_timeout_and_commitment(
            url.to_owned(),
            deadline,
            CommitmentConfig::confirmed(),
        ));
        Self {
            latest: Latest::default(),
            reads: Reads::start(Arc::clone(&client), deadline),
            client,
            deadline,
        }
    }

    /// A blockhash that is fresh enough for a transaction: the one that [`Rpc::keep_fresh`] holds ready, or else one
    /// that is fetched now.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn latest_blockhash(&self) -> Result<LatestBlockhash, ApiError> {
        match self.latest.fresh() {
            Some(latest) => Ok(latest),
            None => self.latest.fetch(&self.client, self.deadline).await,
        }
    }

    /// Keeps a blockhash ready until `shutdown`.
    pub async fn keep_fresh(self: Arc<Self>, shutdown: CancellationToken) {
        let keep = self.latest.keep(&self.client, self.deadline);
        shutdown.run_until_cancelled(keep).await;
    }

    /// The accounts of a user's swap, read by one call.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn user_accounts(
        &self,
        wallet: Pubkey,
        input: Pubkey,
        output: Pubkey,
    ) -> Result<UserAccounts, ApiError> {
        let ([wallet, input, output], rent) = self.reads.read([wallet, input, output]).await?;
        // Lamports sent ahead to an address whose token account is yet to be created make it no token account.
        let created = |account: Option<HeldAccount>| account.filter(|held| !is_system(held));
        Ok(UserAccounts {
            lamports: wallet.map_or(0, |wallet| wallet.lamports),
            input: created(input),
            output: created(output),
            rent,
        })
    }
}

/// Owner of accounts that hold lamports and nothing else.
const SYSTEM_PROGRAM: Pubkey = Pubkey::new_from_array([0; 32]);

fn is_system(account: &HeldAccount) -> bool {
    account.program == SYSTEM_PROGRAM
}

/// The account in a node's answer. `None` when its encoding cannot be read.
fn held(account: &UiAccount) -> Option<HeldAccount> {
    Some(HeldAccount {
        program: account.owner.parse().ok()?,
        lamports: account.lamports,
        data: account.data.decode()?,
    })
}

fn malformed(what: &'static str) -> ApiError {
    ApiError::RpcFailed(anyhow::anyhow!(what))
}

/// Ends `call` at the deadline.
async fn within<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ApiError> {
    tokio::time::timeout(deadline, call)
        .await
        .map_err(|_| ApiError::RpcTimeout)?
        .map_err(|error| match error.kind() {
            // The client counts a little later than the deadline here, but may be first.
            ErrorKind::Reqwest(error) if error.is_timeout() => ApiError::RpcTimeout,
            // The texts of other kinds may quote the endpoint with its key.
            ErrorKind::RpcError(RpcError::RpcResponseError { code, message, .. }) => {
                ApiError::RpcFailed(anyhow::anyhow!("refused: {message} ({code})"))
            }
            ErrorKind::RpcError(_) | ErrorKind::SerdeJson(_) => {
                malformed("an answer of another shape")
            }
            ErrorKind::Reqwest(error) if error.is_connect() => malformed("no connection"),
            ErrorKind::Reqwest(error) if error.is_status() => malformed("an HTTP error status"),
            _ => malformed("the connection failed"),
        })
}

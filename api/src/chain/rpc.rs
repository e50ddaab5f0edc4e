//! The few things the API asks the cluster's RPC while a request waits.

use std::time::Duration;

use cpmm::TokenAccount;
use solana_commitment_config::CommitmentConfig;
use solana_hash::Hash;
use solana_pubkey::Pubkey;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::client_error::Error as ClientError;

use crate::error::ApiError;

/// A recent blockhash and the block height up to which it is valid, from one answer, so that the two
/// always belong together.
#[derive(Clone, Copy, Debug)]
pub struct LatestBlockhash {
    /// The blockhash.
    pub blockhash: Hash,
    /// Last block height at which a transaction with it can land.
    pub last_valid_block_height: u64,
}

/// RPC client with a deadline on every call.
pub struct Rpc {
    client: RpcClient,
    deadline: Duration,
}

impl Rpc {
    /// A client of the cluster at `url`; each call ends after `deadline`.
    #[must_use]
    pub fn new(url: &str, deadline: Duration) -> Self {
        Self {
            client: RpcClient::new_with_timeout_and_commitment(
                url.to_owned(),
                deadline,
                CommitmentConfig::confirmed(),
            ),
            deadline,
        }
    }

    /// The latest confirmed blockhash: a processed one may belong to a fork that dies.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn latest_blockhash(&self) -> Result<LatestBlockhash, ApiError> {
        let (blockhash, last_valid_block_height) = self
            .within_deadline(
                self.client
                    .get_latest_blockhash_with_commitment(CommitmentConfig::confirmed()),
            )
            .await?;
        Ok(LatestBlockhash {
            blockhash,
            last_valid_block_height,
        })
    }

    /// The two token accounts of a swap, `None` where there is none yet, in one call.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`], [`ApiError::RpcFailed`], or [`ApiError::InvalidField`] when an address
    /// holds something that is not a token account of a token program.
    pub async fn token_accounts(
        &self,
        addresses: [Pubkey; 2],
    ) -> Result<[Option<TokenAccount>; 2], ApiError> {
        let found = self
            .within_deadline(
                self.client.get_multiple_accounts_with_commitment(
                    &addresses,
                    CommitmentConfig::processed(),
                ),
            )
            .await?
            .value;
        let decode = |index: usize| -> Result<Option<TokenAccount>, ApiError> {
            let Some(account) = found.get(index).and_then(Option::as_ref) else {
                return Ok(None);
            };
            if account.owner == SYSTEM_PROGRAM {
                // Lamports sent ahead to an address whose token account is yet to be created.
                return Ok(None);
            }
            TokenAccount::decode(&account.data)
                .map(Some)
                .map_err(|error| {
                    ApiError::invalid(
                        "userPublicKey",
                        format!(
                            "its account {} is no token account: {error}",
                            addresses[index]
                        ),
                    )
                })
        };
        Ok([decode(0)?, decode(1)?])
    }

    async fn within_deadline<T>(
        &self,
        call: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ApiError> {
        tokio::time::timeout(self.deadline, call)
            .await
            .map_err(|_| ApiError::RpcTimeout)?
            // The client's message may quote the endpoint with its key; the kind alone is kept.
            .map_err(|error| ApiError::RpcFailed(anyhow::anyhow!("{:?}", error.kind())))
    }
}

/// Owner of accounts that hold lamports and nothing else.
const SYSTEM_PROGRAM: Pubkey = Pubkey::new_from_array([0; 32]);

//! RPC node of the commands: its client, and its failures without the URL, which may hold a key.

use sluice_config::Config;
use solana_commitment_config::CommitmentConfig;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::client_error::{Error as ClientError, ErrorKind};

/// Client of the node at `chain.rpc-url`, which reads what is confirmed.
pub fn client(config: &Config) -> RpcClient {
    RpcClient::new_with_timeout_and_commitment(
        config.chain.rpc_url.to_string(),
        config.chain.rpc_timeout(),
        CommitmentConfig::confirmed(),
    )
}

/// The failure of a call without the endpoint.
pub fn without_url(error: ClientError) -> anyhow::Error {
    match *error.kind {
        ErrorKind::Reqwest(error) => anyhow::Error::new(error.without_url())
            .context("the node at chain.rpc-url does not answer"),
        kind => anyhow::Error::new(kind).context("the node at chain.rpc-url refused"),
    }
}

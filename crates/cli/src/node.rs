//! RPC node of the commands: its client, and its failures without the URL, which may hold a key.

use anyhow::Context;
use sluice_config::Config;
use sluice_transaction::{ExchangeIds, lookup_table::CONFIGURATION};
use solana_account_decoder_client_types::{UiAccountEncoding, UiDataSliceConfig};
use solana_commitment_config::CommitmentConfig;
use solana_pubkey::Pubkey;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::{
    client_error::{Error as ClientError, ErrorKind},
    config::{RpcAccountInfoConfig, RpcProgramAccountsConfig},
    filter::{Memcmp, RpcFilterType},
};

/// Client of the node at `chain.rpc-url`, which reads what is confirmed.
pub fn client(config: &Config) -> RpcClient {
    RpcClient::new_with_timeout_and_commitment(
        config.chain.rpc_url.to_string(),
        config.chain.rpc_timeout(),
        CommitmentConfig::confirmed(),
    )
}

/// Where the exchange of the configuration is.
///
/// # Errors
/// When `chain.exchange-program` is no address.
pub fn exchange(config: &Config) -> anyhow::Result<ExchangeIds> {
    ExchangeIds::configured(config.chain.exchange_program.as_deref())
        .context("chain.exchange-program")
}

/// The failure of a call without the endpoint.
pub fn without_url(error: ClientError) -> anyhow::Error {
    match *error.kind {
        ErrorKind::Reqwest(error) => anyhow::Error::new(error.without_url())
            .context("the node at chain.rpc-url does not answer"),
        kind => anyhow::Error::new(kind).context("the node at chain.rpc-url refused"),
    }
}

/// Addresses of the exchange's fee configurations, in no order.
///
/// # Errors
/// The failure of the call, without the endpoint.
pub async fn configurations(
    rpc: &RpcClient,
    exchange: &ExchangeIds,
) -> anyhow::Result<Vec<Pubkey>> {
    let starts = Memcmp::new_raw_bytes(0, CONFIGURATION.to_vec());
    let config = RpcProgramAccountsConfig {
        filters: Some(vec![RpcFilterType::Memcmp(starts)]),
        account_config: RpcAccountInfoConfig {
            encoding: Some(UiAccountEncoding::Base64),
            // Their addresses are all that is wanted.
            data_slice: Some(UiDataSliceConfig {
                offset: 0,
                length: 0,
            }),
            ..RpcAccountInfoConfig::default()
        },
        ..RpcProgramAccountsConfig::default()
    };
    let listing = rpc.get_program_ui_accounts_with_config(&exchange.program, config);
    let found = listing.await.map_err(without_url)?;
    Ok(found.into_iter().map(|(address, _)| address).collect())
}

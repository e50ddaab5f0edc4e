//! Checks of the chain by its RPC node: that it answers, is in time, lists the pools, and holds what swaps need.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use sluice_config::Config;
use sluice_transaction::{ExchangeIds, LookupTable, lookup_table::fixed_addresses};
use solana_commitment_config::CommitmentConfig;
use solana_hash::Hash;
use solana_pubkey::{Pubkey, pubkey};
use solana_rpc_client::nonblocking::rpc_client::RpcClient;

use super::report::Finding;
use crate::node::{self, without_url};

/// The account with the chain's time.
const CLOCK: Pubkey = pubkey!("SysvarC1ock11111111111111111111111111111111");

/// Where its time stands, seconds since 1970, signed.
const CLOCK_TIME: std::ops::Range<usize> = 32..40;

/// What is to be done about a node.
const NODE_REMEDY: &str = "start the node, or correct chain.rpc-url";

/// An account of the chain.
pub struct ChainAccount {
    /// The program it belongs to.
    pub owner: Pubkey,
    /// Its data.
    pub data: Vec<u8>,
    /// Whether it is a program.
    pub executable: bool,
}

/// Checks by one node.
pub struct ChainChecks {
    /// Where the exchange is, by the configuration.
    pub ids: ExchangeIds,
    rpc: RpcClient,
}

impl ChainChecks {
    /// Those by the node of the configuration.
    ///
    /// # Errors
    /// When it names no exchange.
    pub fn of(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            ids: node::exchange(config)?,
            rpc: node::client(config),
        })
    }

    /// Whether the node answers and calls itself healthy, and its confirmed slot.
    pub async fn node(&self) -> (Finding, Option<u64>) {
        let asking = async {
            let version = self.rpc.get_version().await.map_err(without_url)?;
            let slot = self.rpc.get_slot().await.map_err(without_url)?;
            anyhow::Ok((version.solana_core, slot))
        };
        let (version, slot) = match asking.await {
            Ok(answers) => answers,
            Err(error) => return (Finding::failed(&error, NODE_REMEDY), None),
        };
        let found = format!("version {version}, slot {slot}");
        let finding = match self.rpc.get_health().await {
            Ok(()) => Finding::Well(found),
            Err(error) => Finding::doubtful(
                format!("{found}, not healthy: {:#}", without_url(error)),
                "wait until it has caught up, or use another node",
            ),
        };
        (finding, Some(slot))
    }

    /// The hash of the cluster's first block, by which clusters are told apart; `None` where the node does not say it.
    pub async fn genesis(&self) -> Option<Hash> {
        self.rpc.get_genesis_hash().await.ok()
    }

    /// Whether the chain's time is that of this machine, give or take `limit`.
    pub async fn clock(&self, now: SystemTime, limit: Duration) -> Finding {
        let chain = match self.chain_time().await {
            Ok(chain) => chain,
            Err(error) => return Finding::failed(&error, NODE_REMEDY),
        };
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let behind = i128::from(now).saturating_sub(i128::from(chain));
        if behind.unsigned_abs() <= u128::from(limit.as_secs()) {
            return Finding::Well(format!("{behind} s ahead of the chain"));
        }
        Finding::broken(
            format!(
                "{behind} s ahead of the chain, and no quote is given beyond {} s",
                limit.as_secs()
            ),
            "set the time of this machine (NTP); if it is right, the node is behind or the cluster stands still",
        )
    }

    async fn chain_time(&self) -> anyhow::Result<i64> {
        let clock = self.account(&CLOCK).await?;
        let time = clock.as_ref().and_then(|clock| clock.data.get(CLOCK_TIME));
        let time = time.and_then(|time| time.try_into().ok());
        time.map(i64::from_le_bytes)
            .context("the node has no clock account")
    }

    /// Whether the node lists accounts of a program, by which the market starts. The few fee configurations are asked for: a
    /// node that refuses the call refuses it for them too.
    pub async fn list_of_pools(&self) -> Finding {
        match node::configurations(&self.rpc, &self.ids).await {
            Ok(found) if found.is_empty() => Finding::doubtful(
                "getProgramAccounts is served, but the exchange has no fee configuration here",
                "see whether chain.rpc-url is of the cluster that is meant",
            ),
            Ok(found) => Finding::Well(format!(
                "getProgramAccounts is served, {} fee configurations",
                found.len()
            )),
            Err(error) => Finding::failed(
                &error,
                "set chain.rpc-url to a node that serves getProgramAccounts for the exchange: the market reads all pools by it",
            ),
        }
    }

    /// Whether the exchange is there.
    pub async fn exchange(&self) -> Finding {
        let exchange = self.ids.program;
        match self.account(&exchange).await {
            Ok(Some(account)) if account.executable => Finding::Well(format!("{exchange}")),
            Ok(_) => Finding::broken(
                format!("{exchange} is no program on this cluster"),
                "set chain.rpc-url and chain.exchange-program to the same cluster: `sluice init` writes them for mainnet, devnet and a \
                 localnet",
            ),
            Err(error) => Finding::failed(&error, NODE_REMEDY),
        }
    }

    /// Whether transactions can use the lookup table.
    pub async fn lookup_table(&self, address: &str) -> Finding {
        let remedy = "`sluice lookup-table create` makes a table and prints its address for chain.lookup-table";
        let Ok(address) = address.parse() else {
            return Finding::broken(format!("{address:?} is no address"), remedy);
        };
        let found = match self.account(&address).await {
            Ok(found) => found,
            Err(error) => return Finding::failed(&error, NODE_REMEDY),
        };
        let found = found.as_ref().map(|found| (found.owner, &found.data[..]));
        match LookupTable::decode(address, found) {
            Ok(table) => match table.missing(&fixed_addresses(&self.ids)).len() {
                0 => Finding::Well(format!("{} addresses", table.addresses().len())),
                missing => Finding::doubtful(
                    format!("{missing} addresses that swaps name are not in it, so it is not used"),
                    format!("`sluice lookup-table create --extend {address}` adds them"),
                ),
            },
            Err(error) => Finding::failed(&error.into(), remedy),
        }
    }

    /// An account as it is confirmed; `None` when there is none.
    pub async fn account(&self, address: &Pubkey) -> anyhow::Result<Option<ChainAccount>> {
        let commitment = CommitmentConfig::confirmed();
        let answer = self.rpc.get_account_with_commitment(address, commitment);
        let found = answer.await.map_err(without_url)?.value;
        Ok(found.map(|found| ChainAccount {
            owner: found.owner,
            data: found.data,
            executable: found.executable,
        }))
    }
}

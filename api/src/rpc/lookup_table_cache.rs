//! Lookup table cache: the service's table as the chain has it, read again and again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use service_kit::OutageLog;
use sluice_transaction::{ExchangeIds, LookupTable, LookupTableFault};
use solana_account_decoder_client_types::UiAccountEncoding;
use solana_commitment_config::CommitmentConfig;
use solana_pubkey::Pubkey;
use solana_rpc_client_api::config::RpcAccountInfoConfig;

use super::{
    account::held,
    call::{Node, malformed},
};
use crate::error::ApiError;

/// Pause between two reads. A table that its authority closes goes on for 512 slots, more than a minute on any cluster, so
/// that no transaction is built that could outlive it.
const POLL: Duration = Duration::from_secs(5);

/// Age from which the table that was read last is not used any more: while the node does not answer, its closing would not be
/// seen.
const MAX_AGE: Duration = Duration::from_secs(30);

/// What a read found.
type Found = Result<Arc<LookupTable>, LookupTableFault>;

/// The table held ready, and when it was asked for.
#[derive(Default)]
pub(super) struct LookupTableCache(RwLock<Option<(Arc<LookupTable>, Instant)>>);

impl LookupTableCache {
    /// The table, unless it cannot be used or was not seen for long.
    pub(super) fn usable(&self, now: Instant) -> Option<Arc<LookupTable>> {
        let cached = self.0.read();
        let (table, asked) = cached.as_ref()?;
        let is_recent = now.saturating_duration_since(*asked) < MAX_AGE;
        is_recent.then(|| Arc::clone(table))
    }

    /// Reads the table at `address` again and again. The log says when it begins to be used, and why it is not.
    pub(super) async fn keep(&self, address: Pubkey, exchange: &ExchangeIds, node: &Node) {
        let mut outage = OutageLog::new("reading the lookup table");
        let mut before = None;
        loop {
            let asked = Instant::now();
            match read(address, exchange, node).await {
                Ok(found) => {
                    outage.recovered();
                    if before.as_ref() != Some(&found) {
                        log(address, &found);
                    }
                    *self.0.write() = found.as_ref().ok().map(|table| (Arc::clone(table), asked));
                    before = Some(found);
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    let details = format!("{error}: {}", cause.unwrap_or_default());
                    outage.failed("the node does not answer", &details);
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

fn log(address: Pubkey, found: &Found) {
    match found {
        Ok(table) => {
            let addresses = table.addresses().len();
            tracing::info!(%address, addresses, "the lookup table chain.lookup-table is used");
        }
        Err(fault) => {
            tracing::error!(%address, %fault, "the lookup table chain.lookup-table is not used");
        }
    }
}

/// The table as of a finalized slot: leaders look addresses up in what is finalized, and drop a transaction whose addresses are
/// not there yet.
async fn read(address: Pubkey, exchange: &ExchangeIds, node: &Node) -> Result<Found, ApiError> {
    let config = RpcAccountInfoConfig {
        encoding: Some(UiAccountEncoding::Base64),
        commitment: Some(CommitmentConfig::finalized()),
        ..RpcAccountInfoConfig::default()
    };
    let keys = [address];
    let call = node.call("getMultipleAccounts", async |client| {
        client
            .get_multiple_ui_accounts_with_config(&keys, config)
            .await
    });
    let mut found = call.await?.value;
    let account = match found.pop().flatten() {
        None => None,
        Some(account) => {
            Some(held(&account).ok_or_else(|| malformed("an unreadable lookup table"))?)
        }
    };
    let account = account.as_ref().map(|held| (held.program, &held.data[..]));
    Ok(LookupTable::for_swaps(address, account, exchange).map(Arc::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_was_not_seen_for_long_is_not_used() {
        let (cache, now) = (LookupTableCache::default(), Instant::now());
        assert_eq!(cache.usable(now), None);
        let table = Arc::new(LookupTable::new(Pubkey::default(), Vec::new()));
        *cache.0.write() = Some((Arc::clone(&table), now));
        assert_eq!(cache.usable(now), Some(table));
        assert_eq!(cache.usable(now + MAX_AGE), None);
    }
}

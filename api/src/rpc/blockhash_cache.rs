//! Blockhash cache: holds a recent blockhash ready, so that no request waits for one.

use std::time::{Duration, Instant};

use parking_lot::RwLock;
use service_kit::OutageLog;
use solana_commitment_config::CommitmentConfig;
use solana_hash::Hash;

use super::call::Node;
use crate::error::ApiError;

/// Pause between two fetches. A blockhash lives for 150 blocks, a minute of slots of 400 ms and half of it of 200, so
/// that one of this age has lost a thirtieth of its life at most.
const POLL: Duration = Duration::from_secs(1);

/// Age from which the blockhash held ready is not handed out any more: a few fetches failed, and each second is a second
/// that the user does not have to sign.
const MAX_AGE: Duration = Duration::from_secs(5);

/// A recent blockhash and the block height up to which it is valid, from one answer, so that the two
/// always belong together.
#[derive(Clone, Copy, Debug)]
pub struct LatestBlockhash {
    /// The blockhash.
    pub blockhash: Hash,
    /// Last block height at which a transaction with it can land.
    pub last_valid_block_height: u64,
}

/// The blockhash held ready.
#[derive(Default)]
pub(super) struct BlockhashCache(RwLock<Option<(LatestBlockhash, Instant)>>);

impl BlockhashCache {
    /// The one held ready, unless it is too old.
    pub(super) fn fresh(&self) -> Option<LatestBlockhash> {
        let (latest, asked) = (*self.0.read())?;
        (asked.elapsed() < MAX_AGE).then_some(latest)
    }

    /// Asks the node, and holds the answer ready. Confirmed, because a processed blockhash may belong to a fork that
    /// dies.
    pub(super) async fn fetch(&self, node: &Node) -> Result<LatestBlockhash, ApiError> {
        let asked = Instant::now();
        let call = node.call("getLatestBlockhash", async |client| {
            let confirmed = CommitmentConfig::confirmed();
            client.get_latest_blockhash_with_commitment(confirmed).await
        });
        let (blockhash, last_valid_block_height) = call.await?;
        let latest = LatestBlockhash {
            blockhash,
            last_valid_block_height,
        };
        *self.0.write() = Some((latest, asked));
        Ok(latest)
    }

    /// Fetches again and again.
    pub(super) async fn keep(&self, node: &Node) {
        let mut outage = OutageLog::new("fetching blockhashes");
        loop {
            match self.fetch(node).await {
                Ok(_) => outage.recovered(),
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

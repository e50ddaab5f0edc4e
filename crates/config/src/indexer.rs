//! Settings of the indexer process.

use std::{net::SocketAddr, time::Duration};

use serde::Deserialize;

use crate::ConfigError;

/// Highest rate of a backfill: a node of one's own serves hundreds of blocks a second, and nothing needs more.
const MAX_BACKFILL_CALLS_PER_SECOND: u32 = 1_000;

/// Longest standstill: nobody who waits for events waits for an hour to be told that none comes.
const MAX_STANDSTILL_SECS: u64 = 3_600;

/// The indexer process.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct IndexerConfig {
    /// Address of the indexer's health endpoints.
    pub listen: SocketAddr,
    /// Calls a second, at most, by which slots are read from `chain.rpc-url` that no Geyser server replays; 0 for none.
    pub backfill_calls_per_second: u32,
    /// Longest time for which slots may come of which none is stored while the leader counts as ready, seconds.
    pub longest_standstill_secs: u64,
}

impl Default for IndexerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8788)),
            backfill_calls_per_second: 20,
            // Several times what finality takes on mainnet.
            longest_standstill_secs: 60,
        }
    }
}

impl IndexerConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.backfill_calls_per_second > MAX_BACKFILL_CALLS_PER_SECOND {
            return Err(ConfigError::Range {
                key: "indexer.backfill-calls-per-second",
                value: self.backfill_calls_per_second.to_string(),
                rule: "0 to 1000",
            });
        }
        if !(1..=MAX_STANDSTILL_SECS).contains(&self.longest_standstill_secs) {
            return Err(ConfigError::Range {
                key: "indexer.longest-standstill-secs",
                value: self.longest_standstill_secs.to_string(),
                rule: "1 to 3600",
            });
        }
        Ok(())
    }

    /// Longest time for which slots may come of which none is stored.
    #[must_use]
    pub const fn longest_standstill(&self) -> Duration {
        Duration::from_secs(self.longest_standstill_secs)
    }
}

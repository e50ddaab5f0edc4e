//! Freshness settings: how far behind the present the market may be and still answer.

use std::time::Duration;

use serde::Deserialize;

/// How far behind the present the market may be.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FreshnessConfig {
    /// Longest time by which the newest slot's own time may be behind the time of day, seconds.
    pub max_clock_age_secs: u64,
    /// Most slots by which the newest slot may be behind the RPC node's.
    pub max_slots_behind: u64,
}

impl Default for FreshnessConfig {
    fn default() -> Self {
        Self {
            max_clock_age_secs: 30,
            max_slots_behind: 64,
        }
    }
}

impl FreshnessConfig {
    /// Longest time by which the newest slot's own time may be behind.
    #[must_use]
    pub const fn max_clock_age(&self) -> Duration {
        Duration::from_secs(self.max_clock_age_secs)
    }
}

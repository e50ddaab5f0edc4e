//! Freshness settings: how far behind the present the market may be and still answer.

use std::time::Duration;

use serde::Deserialize;

use crate::ConfigError;

/// Longest clock age: quotes of an hour ago are of no use to anyone.
const MAX_CLOCK_AGE_SECS: u64 = 3_600;

/// Most slots: half an hour where a slot lasts 200 ms, more where it lasts longer. Time is bounded by the clock age.
const MAX_SLOTS_BEHIND: u64 = 9_000;

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
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MAX_CLOCK_AGE_SECS).contains(&self.max_clock_age_secs) {
            return Err(ConfigError::Range {
                key: "freshness.max-clock-age-secs",
                value: self.max_clock_age_secs.to_string(),
                rule: "1 to 3600",
            });
        }
        if !(1..=MAX_SLOTS_BEHIND).contains(&self.max_slots_behind) {
            return Err(ConfigError::Range {
                key: "freshness.max-slots-behind",
                value: self.max_slots_behind.to_string(),
                rule: "1 to 9000",
            });
        }
        Ok(())
    }

    /// Longest time by which the newest slot's own time may be behind.
    #[must_use]
    pub const fn max_clock_age(&self) -> Duration {
        Duration::from_secs(self.max_clock_age_secs)
    }
}

//! Bootstrap settings: limits of the RPC calls by which the market reads all pools when it starts.

use std::time::Duration;

use serde::Deserialize;

use crate::ConfigError;

/// Longest deadline, seconds: a day. A start that waits longer for one answer has no use for it.
const MAX_TIMEOUT_SECS: u64 = 86_400;

/// Most calls in flight: beyond it no provider is quicker.
const MAX_PARALLEL_CALLS: usize = 256;

/// How the market reads all pools when it starts.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BootstrapConfig {
    /// Longest time in which nothing comes of an answer, its beginning included, seconds.
    pub idle_timeout_secs: u64,
    /// Longest time for a whole answer, seconds.
    pub answer_timeout_secs: u64,
    /// Most calls in flight.
    pub parallel_calls: usize,
}

impl Default for BootstrapConfig {
    fn default() -> Self {
        Self {
            idle_timeout_secs: 60,
            answer_timeout_secs: 600,
            parallel_calls: 32,
        }
    }
}

impl BootstrapConfig {
    /// Longest time in which nothing comes of an answer.
    #[must_use]
    pub const fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_secs)
    }

    /// Longest time for a whole answer.
    #[must_use]
    pub const fn answer_timeout(&self) -> Duration {
        Duration::from_secs(self.answer_timeout_secs)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let timeouts = [
            ("bootstrap.idle-timeout-secs", self.idle_timeout_secs),
            ("bootstrap.answer-timeout-secs", self.answer_timeout_secs),
        ];
        for (key, value) in timeouts {
            if !(1..=MAX_TIMEOUT_SECS).contains(&value) {
                return Err(ConfigError::Range {
                    key,
                    value: value.to_string(),
                    rule: "1 to 86400",
                });
            }
        }
        if !(1..=MAX_PARALLEL_CALLS).contains(&self.parallel_calls) {
            return Err(ConfigError::Range {
                key: "bootstrap.parallel-calls",
                value: self.parallel_calls.to_string(),
                rule: "1 to 256",
            });
        }
        Ok(())
    }
}

//! Section `[webhooks]` of the configuration: deadlines, retry schedule, retention, IDLs.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use serde::Deserialize;

use crate::ConfigError;

/// Longest delivery deadline that may be configured; a lease on a delivery outlives it.
pub const MAX_DELIVERY_TIMEOUT_SECS: u64 = 30;

/// Most pauses between the attempts to deliver a message: every attempt is kept with its answer, and a hundred
/// are more than a person looks through.
pub const MAX_RETRY_PAUSES: usize = 100;

/// Longest pause between two attempts, seconds: a message that is tried less often than once a week is given up
/// rather than retried.
pub const MAX_RETRY_PAUSE_SECS: u64 = 7 * SECONDS_PER_DAY;

/// Longest time that two secrets may sign: an endpoint that has not changed to the new one within a week will not.
pub const MAX_SECRET_OVERLAP_HOURS: u32 = 7 * 24;

/// Most keys of one kind that a webhook may be allowed to name: all of them travel in one request, which is
/// held in memory, 80 MB for so many.
pub const MAX_KEYS_PER_WEBHOOK: usize = 1_000_000;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Rules for webhook delivery.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct WebhooksConfig {
    /// Whether a callback URL may be plain http to a loopback address. For development only:
    /// in production it would let a subscriber reach services on this machine.
    pub allow_http_loopback: bool,
    /// Deadline of one delivery, from name resolution to the last byte of the answer, seconds.
    pub delivery_timeout_secs: u64,
    /// Pauses before the second, third, … attempt to deliver a message, seconds; `None` for those of Standard
    /// Webhooks. A message is given up when the attempt after the last pause has failed.
    pub retry_pauses_secs: Option<Vec<u64>>,
    /// How long finished messages and their attempts are kept, days. It must exceed any replay of the stream,
    /// by which a message must still be known.
    pub retention_days: u16,
    /// How long messages that are not accepted are kept, days.
    pub undelivered_retention_days: u16,
    /// Room for messages, MiB: beyond it finished ones are removed before their time.
    pub max_stored_mib: u32,
    /// Anchor IDL files of programs whose events are shown decoded, beside the guard's and the exchange's.
    pub idls: Vec<PathBuf>,
    /// How long an IDL counts that was read from its program's own account, hours; 0 for reading none.
    pub idl_refresh_hours: u32,
    /// How long the signing secret before the current one signs as well after a rotation, hours, when the
    /// one who rotates does not say.
    pub secret_overlap_hours: u32,
    /// Tests that one API key may have sent per minute. Another's server may be at a webhook's URL, and must
    /// not be flooded through this one.
    pub tests_per_minute: NonZeroU32,
    /// Most webhooks of one API key.
    pub max_per_key: u32,
    /// Most accounts of one webhook, and most owners of token accounts. The longest body that is read follows from it.
    pub max_accounts: usize,
    /// Most programs of one webhook.
    pub max_programs: usize,
}

impl WebhooksConfig {
    /// Deadline of one delivery.
    #[must_use]
    pub const fn delivery_timeout(&self) -> Duration {
        Duration::from_secs(self.delivery_timeout_secs)
    }

    /// Pauses before the second, third, … attempt, where the file names them.
    #[must_use]
    pub fn retry_pauses(&self) -> Option<Vec<Duration>> {
        let seconds = self.retry_pauses_secs.as_ref()?;
        Some(seconds.iter().copied().map(Duration::from_secs).collect())
    }

    /// How long finished messages are kept.
    #[must_use]
    pub const fn retention(&self) -> Duration {
        Duration::from_secs(self.retention_days as u64 * SECONDS_PER_DAY)
    }

    /// How long messages that are not accepted are kept.
    #[must_use]
    pub const fn undelivered_retention(&self) -> Duration {
        Duration::from_secs(self.undelivered_retention_days as u64 * SECONDS_PER_DAY)
    }

    /// How long an IDL counts that was read from the chain; `None` where none is read.
    #[must_use]
    pub fn idl_refresh(&self) -> Option<Duration> {
        let hours = u64::from(self.idl_refresh_hours);
        (hours > 0).then(|| Duration::from_secs(hours * 3600))
    }

    /// Room for messages, bytes.
    #[must_use]
    pub const fn max_stored_bytes(&self) -> u64 {
        self.max_stored_mib as u64 * 1024 * 1024
    }

    /// How long the secret before the current one signs as well.
    #[must_use]
    pub const fn secret_overlap(&self) -> Duration {
        Duration::from_secs(self.secret_overlap_hours as u64 * 3600)
    }
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        Self {
            allow_http_loopback: false,
            delivery_timeout_secs: 15,
            retry_pauses_secs: None,
            retention_days: 7,
            undelivered_retention_days: 30,
            max_stored_mib: 8 * 1024,
            idls: Vec::new(),
            idl_refresh_hours: 24,
            secret_overlap_hours: 24,
            tests_per_minute: const { NonZeroU32::new(10).expect("not zero") },
            max_per_key: 1_000,
            max_accounts: 100_000,
            max_programs: 1_000,
        }
    }
}

impl WebhooksConfig {
    /// Refuses values outside their ranges.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (key, days) in [
            ("webhooks.retention-days", self.retention_days),
            (
                "webhooks.undelivered-retention-days",
                self.undelivered_retention_days,
            ),
        ] {
            if days == 0 {
                return Err(ConfigError::Range {
                    key,
                    value: "0".to_owned(),
                    rule: "at least 1",
                });
            }
        }
        let timeout = self.delivery_timeout_secs;
        if !(1..=MAX_DELIVERY_TIMEOUT_SECS).contains(&timeout) {
            return Err(ConfigError::Range {
                key: "webhooks.delivery-timeout-secs",
                value: timeout.to_string(),
                rule: "between 1 and 30",
            });
        }
        if let Some(pauses) = &self.retry_pauses_secs
            && (pauses.len() > MAX_RETRY_PAUSES
                || pauses.iter().any(|pause| *pause > MAX_RETRY_PAUSE_SECS))
        {
            return Err(ConfigError::Range {
                key: "webhooks.retry-pauses-secs",
                value: format!("a list of {}", pauses.len()),
                rule: "at most 100 pauses, each of at most 604800 seconds, which is a week",
            });
        }
        let overlap = self.secret_overlap_hours;
        if overlap > MAX_SECRET_OVERLAP_HOURS {
            return Err(ConfigError::Range {
                key: "webhooks.secret-overlap-hours",
                value: overlap.to_string(),
                rule: "between 0 and 168, which is a week",
            });
        }
        if self.max_per_key == 0 {
            return Err(ConfigError::Range {
                key: "webhooks.max-per-key",
                value: "0".to_owned(),
                rule: "at least 1",
            });
        }
        for (key, value) in [
            ("webhooks.max-accounts", self.max_accounts),
            ("webhooks.max-programs", self.max_programs),
        ] {
            if !(1..=MAX_KEYS_PER_WEBHOOK).contains(&value) {
                return Err(ConfigError::Range {
                    key,
                    value: value.to_string(),
                    rule: "between 1 and 1000000",
                });
            }
        }
        Ok(())
    }
}

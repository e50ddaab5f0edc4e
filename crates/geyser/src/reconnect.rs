//! Reconnect pause: how long what is lost waits before it is opened again (pure).

use std::time::Duration;

/// The pause after one more failure than this many in a row: `first`, doubled for each, and no more than `longest`.
pub fn pause(first: Duration, failures: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << failures.min(16)).min(longest)
}

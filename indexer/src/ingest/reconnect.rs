//! Reconnects: the pauses between sessions that fail, and one log line for the outage.

use std::time::Duration;

use service_kit::{Backoff, OutageLog};
use sluice_geyser::limits::LONGEST_RECONNECT_PAUSE;

use super::session_end::SessionEnd;

/// What outlives a session that failed.
#[derive(Debug)]
pub(super) struct Reconnect {
    outage: OutageLog,
    backoff: Backoff,
}

impl Reconnect {
    pub(super) fn new() -> Self {
        Self {
            outage: OutageLog::new("following the chain"),
            backoff: Backoff::up_to(LONGEST_RECONNECT_PAUSE),
        }
    }

    /// Takes note of a failure; returns how long to wait before the next session.
    pub(super) fn failed(&mut self, end: &SessionEnd, random: u32) -> Duration {
        self.outage.failed(end.kind(), end);
        self.backoff.next_pause(random)
    }

    /// Ends the outage: something was stored, so the connection has shown to be useful.
    pub(super) fn recovered(&mut self) {
        self.outage.recovered();
        self.backoff.reset();
    }
}

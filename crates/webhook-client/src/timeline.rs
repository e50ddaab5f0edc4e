//! Timeline: when the parts of an attempt were done.

use std::time::Instant;

use sluice_store::Timings;

/// Notes times since its making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    begun: Instant,
    timings: Timings,
}

impl Timeline {
    /// Starts the clock.
    pub(crate) fn start() -> Self {
        Self {
            begun: Instant::now(),
            timings: Timings::default(),
        }
    }

    /// What was noted.
    pub(crate) const fn timings(&self) -> Timings {
        self.timings
    }

    /// The name is resolved.
    pub(crate) fn resolved(&mut self) {
        self.timings.resolved = Some(self.begun.elapsed());
    }

    /// The TCP connection stands.
    pub(crate) fn connected(&mut self) {
        self.timings.connected = Some(self.begun.elapsed());
    }

    /// Its TLS handshake is over.
    pub(crate) fn secured(&mut self) {
        self.timings.secured = Some(self.begun.elapsed());
    }

    /// The first byte of the answer is there.
    pub(crate) fn answered(&mut self) {
        self.timings.first_byte = Some(self.begun.elapsed());
    }
}

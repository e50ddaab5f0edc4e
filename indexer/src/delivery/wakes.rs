//! What the dispatcher waits for: deliveries to begin with, and reasons to lease more.

use std::{sync::Arc, time::Duration};

use service_kit::CancellationToken;
use sluice_store::WebhookSet;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::capacity::{ReservedDelivery, Submissions};
use crate::to_lease::ToLease;

/// How often due retries are looked for. New messages of this process do not wait for it.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A reason to lease.
pub(super) enum Wake {
    /// Deliveries were inserted already leased.
    Submitted(Vec<ReservedDelivery>),
    /// Messages of these webhooks were inserted whose deliveries are not leased, or results of theirs were recorded, so there is
    /// capacity again, and a lane may go on.
    ToLease(WebhookSet),
    /// Retries may have become due.
    Tick,
}

/// The sources of [`Wake`].
pub(super) struct Wakes {
    pub(super) submissions: Submissions,
    to_lease: Arc<ToLease>,
    ticks: Interval,
    shutdown: CancellationToken,
}

impl Wakes {
    pub(super) fn new(
        submissions: Submissions,
        to_lease: Arc<ToLease>,
        shutdown: CancellationToken,
    ) -> Self {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            submissions,
            to_lease,
            ticks,
            shutdown,
        }
    }

    /// `None` at the shutdown.
    pub(super) async fn next(&mut self) -> Option<Wake> {
        if self.shutdown.is_cancelled() {
            return None;
        }
        tokio::select! {
            () = self.shutdown.cancelled() => None,
            Some(deliveries) = self.submissions.submitted.recv() => {
                Some(Wake::Submitted(deliveries))
            }
            () = self.to_lease.some() => Some(Wake::ToLease(self.to_lease.take())),
            _ = self.ticks.tick() => {
                self.to_lease.forget_full();
                Some(Wake::Tick)
            }
        }
    }
}

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
    /// Messages of these webhooks were inserted whose deliveries are not leased.
    Inserted(WebhookSet),
    /// Results of these webhooks were recorded, so there is capacity again, and a lane may go on.
    Recorded(WebhookSet),
    /// Retries may have become due.
    Tick,
}

/// The sources of [`Wake`].
pub(super) struct Wakes {
    pub(super) submissions: Submissions,
    inserted: Arc<ToLease>,
    recorded: Arc<ToLease>,
    ticks: Interval,
    shutdown: CancellationToken,
}

impl Wakes {
    pub(super) fn new(
        submissions: Submissions,
        inserted: Arc<ToLease>,
        recorded: Arc<ToLease>,
        shutdown: CancellationToken,
    ) -> Self {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            submissions,
            inserted,
            recorded,
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
            () = self.inserted.some() => Some(Wake::Inserted(self.inserted.take())),
            () = self.recorded.some() => Some(Wake::Recorded(self.recorded.take())),
            _ = self.ticks.tick() => Some(Wake::Tick),
        }
    }
}

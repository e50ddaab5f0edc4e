//! Retention: removes messages that are too old, and finished ones that take too much room.

use std::time::Duration;

use service_kit::{CancellationToken, Clock, OutageLog};
use sluice_store::{Removed, Retention, Store, Timestamp};
use tokio::time::sleep;

/// How often old messages are looked for.
const INTERVAL: Duration = Duration::from_secs(10 * 60);

/// What is kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Finished messages.
    pub finished: Duration,
    /// Messages that no endpoint accepts.
    pub undelivered: Duration,
    /// Bytes, as long as there are finished messages that can be removed.
    pub bytes: u64,
}

/// Removes old messages until `shutdown`.
pub async fn run(store: Store, limits: Limits, clock: Clock, shutdown: CancellationToken) {
    let mut outage = OutageLog::new("removing old messages");
    while !shutdown.is_cancelled() {
        let now = Timestamp::from(clock.now());
        let retention = Retention {
            now,
            finished_before: now.before(limits.finished),
            undelivered_before: Some(now.before(limits.undelivered)),
            max_bytes: Some(limits.bytes),
        };
        match store.prune(&retention).await {
            Ok(removed) => {
                outage.recovered();
                log(&removed, limits);
            }
            Err(error) => outage.failed(error.outage(), &error),
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = sleep(INTERVAL) => {}
        }
    }
}

fn log(removed: &Removed, limits: Limits) {
    if removed.finished > 0 {
        tracing::info!(messages = removed.finished, "old messages removed");
    }
    if removed.for_room > 0 {
        let (messages, limit) = (removed.for_room, limits.bytes);
        tracing::warn!(
            messages,
            limit,
            "finished messages removed before their time, for want of room"
        );
    }
    if removed.for_quotas > 0 {
        let messages = removed.for_quotas;
        tracing::warn!(
            messages,
            "messages removed of owners who had more than their quota says"
        );
    }
    for (webhook, messages) in &removed.undelivered {
        tracing::error!(%webhook, messages, "messages that were not accepted in time are removed");
    }
    if removed.too_large {
        tracing::error!(
            limit = limits.bytes,
            "more is kept than allowed, because it is not delivered yet"
        );
    }
}

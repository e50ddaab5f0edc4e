//! Settling: has staged messages written to where they belong, when those of a commit are on their way.

use std::{sync::Arc, time::Duration};

use service_kit::{CancellationToken, OutageLog};
use sluice_store::Store;
use tokio::{select, sync::Notify, time::sleep};

use crate::metrics::Metrics;

/// How long after a commit it is waited: what is leased is sent meanwhile, and most results are recorded, which settles it too.
const ON_THEIR_WAY: Duration = Duration::from_millis(100);

/// Told of commits with staged messages. Clones tell the same task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settling(Arc<Notify>);

impl Settling {
    /// Some messages of a commit are staged.
    pub(crate) fn staged(&self) {
        self.0.notify_one();
    }

    /// Settles what is staged, again and again, until `stop`. What is left then the next leader settles.
    pub(crate) async fn run(self, store: Store, metrics: Metrics, stop: CancellationToken) {
        let mut outage = OutageLog::new("settling of messages");
        loop {
            select! {
                () = stop.cancelled() => return,
                () = self.0.notified() => {}
            }
            sleep(ON_THEIR_WAY).await;
            match store.settle().await {
                Ok(()) => outage.recovered(),
                Err(error) => {
                    metrics.store_failed(&error);
                    outage.failed(error.outage(), &error);
                    self.0.notify_one();
                }
            }
        }
    }
}

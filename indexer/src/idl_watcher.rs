//! IDL watcher: decodes by the IDLs that are stored, as they change.

use std::{sync::Arc, time::Duration};

use service_kit::{CancellationToken, OutageLog};
use sluice_store::{Store, StoreError};
use tokio::{sync::watch, time::sleep};

use crate::events::idl::Idls;

/// How often the IDLs' revision is read, wall time: one row, from memory. An uploaded IDL counts after this time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The task that keeps what decodes up to date.
#[derive(Debug)]
pub struct IdlWatcher {
    store: Store,
    /// Those of the build and of the configuration.
    fixed: Arc<Idls>,
    /// Of what was published last.
    revision: u64,
    published: watch::Sender<Arc<Idls>>,
}

impl IdlWatcher {
    /// Reads what is stored, beside what is `fixed`. What the receiver holds changes while [`IdlWatcher::run`] runs.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn start(
        store: Store,
        fixed: Idls,
    ) -> Result<(Self, watch::Receiver<Arc<Idls>>), StoreError> {
        let fixed = Arc::new(fixed);
        let (published, idls) = watch::channel(Arc::clone(&fixed));
        let revision = publish(&store, &fixed, &published).await?;
        let watcher = Self {
            store,
            fixed,
            revision,
            published,
        };
        Ok((watcher, idls))
    }

    /// Publishes the IDLs whenever they change, until `shutdown`. The API may be another process, so there is nothing but the
    /// database to learn it from.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut outage = OutageLog::new("reading the IDLs");
        while !shutdown.is_cancelled() {
            match self.refresh().await {
                Ok(()) => outage.recovered(),
                Err(error) => outage.failed(error.outage(), &error),
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sleep(POLL_INTERVAL) => {}
            }
        }
    }

    async fn refresh(&mut self) -> Result<(), StoreError> {
        if self.store.idl_revision().await? != self.revision {
            self.revision = publish(&self.store, &self.fixed, &self.published).await?;
        }
        Ok(())
    }
}

/// Publishes what is stored, and returns its revision.
async fn publish(
    store: &Store,
    fixed: &Arc<Idls>,
    published: &watch::Sender<Arc<Idls>>,
) -> Result<u64, StoreError> {
    let stored = store.stored_idls().await?;
    let (fixed, revision) = (Arc::clone(fixed), stored.revision);
    // Milliseconds for each megabyte, which the other tasks need not wait for.
    let reading = tokio::task::spawn_blocking(move || fixed.with_stored(&stored));
    match reading.await {
        Ok(idls) => {
            published.send_replace(Arc::new(idls));
        }
        // Only when the process ends.
        Err(error) => tracing::error!(%error, "reading the IDLs broke off"),
    }
    Ok(revision)
}

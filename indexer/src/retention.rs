//! Forgetting what is long done.

use std::time::{Duration, SystemTime};

use service_kit::CancellationToken;
use sluice_store::{Store, Timestamp};
use tokio::time::sleep;

use crate::incident::Incident;

/// How long finished messages are kept: long enough for a person to look into a week's failures, and
/// far beyond any replay of the stream, by which a message must still be known.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How often old messages are looked for.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Removes old finished messages until `shutdown`.
pub async fn run(store: Store, shutdown: CancellationToken) {
    let mut incident = Incident::new("removing old messages");
    while !shutdown.is_cancelled() {
        let before = Timestamp::from(SystemTime::now()).before(RETENTION);
        match store.prune_finished(before).await {
            Ok(removed) => {
                incident.recovered();
                if removed > 0 {
                    tracing::info!(removed, "old messages removed");
                }
            }
            Err(error) => incident.failed("the database does not answer", &error),
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = sleep(INTERVAL) => {}
        }
    }
}

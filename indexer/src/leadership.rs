//! Leader election: one process per database ingests the chain, the others stand by.

use std::time::Duration;

use service_kit::{CancellationToken, OutageLog};
use sluice_store::{Leadership, Store, StoreError};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{metrics::Metrics, status::Status};

/// How often a standby tries to become leader, and the leader renews that it is: how long ingestion may
/// pause when the leader dies.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long the tasks of a leader that is none any more may take to end. One may wait for a database that is cut off, and
/// what it writes after all is refused.
const ENDING: Duration = Duration::from_secs(2);

/// Where it is shown whether this process leads.
type Observers<'a> = (&'a Status, &'a Metrics);

/// Runs the tasks that `start` spawns whenever this process leads, until `shutdown`. What they write goes through the
/// store that `start` is given. They end, each by the token it was given, when leadership is lost. False when one of them
/// ended by itself.
pub async fn run<F>(
    store: &Store,
    observers: Observers<'_>,
    start: F,
    shutdown: &CancellationToken,
) -> bool
where
    F: Fn(&mut JoinSet<()>, &Store, &CancellationToken),
{
    let mut outage = OutageLog::new("electing a leader");
    let mut stands_by = false;
    while !shutdown.is_cancelled() {
        match store.try_acquire_leadership().await {
            Ok(Some(leadership)) => {
                outage.recovered();
                stands_by = false;
                if !lead(leadership, observers, &start, shutdown).await {
                    return false;
                }
            }
            Ok(None) => {
                outage.recovered();
                observers.0.leads(Some(false));
                if !stands_by {
                    stands_by = true;
                    tracing::info!("another process is the leader; this one stands by");
                }
            }
            Err(error) => {
                show_failure(&error, observers);
                outage.failed(error.outage(), &error);
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = sleep(INTERVAL) => {}
        }
    }
    true
}

/// Runs the tasks until `shutdown` or until leadership is lost. False when one of them ended by itself.
async fn lead<F>(
    mut leadership: Leadership,
    (status, metrics): Observers<'_>,
    start: &F,
    shutdown: &CancellationToken,
) -> bool
where
    F: Fn(&mut JoinSet<()>, &Store, &CancellationToken),
{
    let stop = shutdown.child_token();
    let mut tasks = JoinSet::new();
    start(&mut tasks, leadership.store(), &stop);
    status.leads(Some(true));
    metrics.leader(true);
    let cause = tokio::select! {
        () = shutdown.cancelled() => None,
        error = lost(&mut leadership) => Some(error),
        _ = tasks.join_next() => {
            stop.cancel();
            tasks.join_all().await;
            return false;
        }
    };
    stop.cancel();
    metrics.leader(false);
    if let Some(error) = cause {
        tracing::error!(%error, "leadership is lost");
        status.leads(None);
        show_failure(&error, (status, metrics));
        let ending = async { while tasks.join_next().await.is_some() {} };
        if timeout(ENDING, ending).await.is_err() {
            tasks.shutdown().await;
        }
        return true;
    }
    tasks.join_all().await;
    if let Err(error) = leadership.release().await {
        tracing::warn!(%error, "leadership was not released; it ends with this process");
    }
    true
}

/// Shows why no process may be at work: the stream of this one has ended with its leadership.
fn show_failure(error: &StoreError, (status, metrics): Observers<'_>) {
    status.disconnected(error.to_string());
    metrics.store_failed(error);
}

/// Returns when leadership is lost.
async fn lost(leadership: &mut Leadership) -> StoreError {
    loop {
        sleep(INTERVAL).await;
        if let Err(error) = leadership.renew().await {
            return error;
        }
    }
}

//! Being the one who indexes: of several processes on one database one does, the others stand by.

use std::time::Duration;

use service_kit::{CancellationToken, OutageLog};
use sluice_store::{Leadership, Store, StoreError};
use tokio::{task::JoinSet, time::sleep};

use crate::{metrics::Metrics, status::Status};

/// How often a standby asks for the lead, and the leader whether it still has it: how long nobody may
/// index when the leader dies.
const INTERVAL: Duration = Duration::from_secs(1);

/// Those who are told who leads.
type Observers<'a> = (&'a Status, &'a Metrics);

/// Runs the tasks that `start` spawns whenever this process leads, until `shutdown`. They end, each by the
/// token it was given, when the lead is lost. False when one of them ended by itself.
pub async fn run<F>(
    store: &Store,
    observers: Observers<'_>,
    start: F,
    shutdown: &CancellationToken,
) -> bool
where
    F: Fn(&mut JoinSet<()>, &CancellationToken),
{
    let mut outage = OutageLog::new("taking the lead");
    let mut told = false;
    while !shutdown.is_cancelled() {
        match store.try_acquire_leadership().await {
            Ok(Some(lead)) => {
                outage.recovered();
                told = false;
                if !hold(lead, observers, &start, shutdown).await {
                    return false;
                }
            }
            Ok(None) => {
                outage.recovered();
                observers.0.leads(false);
                if !std::mem::replace(&mut told, true) {
                    tracing::info!("another process indexes; this one stands by");
                }
            }
            Err(error) => outage.failed("the database does not answer", &error),
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = sleep(INTERVAL) => {}
        }
    }
    true
}

async fn hold<F>(
    mut lead: Leadership,
    (status, metrics): Observers<'_>,
    start: &F,
    shutdown: &CancellationToken,
) -> bool
where
    F: Fn(&mut JoinSet<()>, &CancellationToken),
{
    let stop = shutdown.child_token();
    let mut tasks = JoinSet::new();
    start(&mut tasks, &stop);
    status.leads(true);
    metrics.leading(true);
    let lost = tokio::select! {
        () = shutdown.cancelled() => None,
        error = lose(&mut lead) => Some(error),
        _ = tasks.join_next() => {
            stop.cancel();
            tasks.join_all().await;
            return false;
        }
    };
    stop.cancel();
    tasks.join_all().await;
    metrics.leading(false);
    if let Some(error) = lost {
        tracing::error!(%error, "the lead is lost");
        return true;
    }
    if let Err(error) = lead.release().await {
        tracing::warn!(%error, "the lead was not handed over; it ends with this process");
    }
    true
}

/// Returns when the lead is lost.
async fn lose(lead: &mut Leadership) -> StoreError {
    loop {
        sleep(INTERVAL).await;
        if let Err(error) = lead.check().await {
            return error;
        }
    }
}

//! Recorder: writes the results of attempts in batches, releases unused leases, and pauses endpoints.
//!
//! Results that come in while a batch is written make the next one.

use std::{sync::Arc, time::Duration};

use service_kit::{Clock, OutageLog};
use sluice_store::{
    AttemptResult, EndpointChange, EndpointState, Lease, Outcome, Store, StoreError, Timestamp,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout_at},
};

use super::{
    backlog::Backlog, breaker, capacity::ReservedPart, limiter::EndpointLimiter,
    limits::MAX_IN_FLIGHT, recoveries::Recoveries,
};
use crate::{metrics::Metrics, to_lease::ToLease};

/// Results recorded in one transaction.
const MAX_BATCH: usize = 512;

/// Batch window: how long results may wait for others to be recorded with. If the process is killed meanwhile, the
/// messages are delivered once more, so not long.
pub(super) const BATCH_WINDOW: Duration = Duration::from_millis(20);

/// The window ends early when no result came for so long.
const IDLE_WINDOW: Duration = Duration::from_millis(5);

/// An attempt that took so many times the batch window is slow: a twentieth more before its endpoint gets the next message is lost
/// in how long its answers take. In a transaction for each, its results would be written in the middle of others' bursts.
const WINDOWS_OF_SLOW_ATTEMPT: u32 = 20;

/// The end of a leased delivery in this process.
pub(super) enum Ended {
    /// It was attempted: the result is to be recorded.
    Attempted(Box<AttemptResult>),
    /// It was not: the lease is to be released.
    Unused(Lease),
    /// A batch was attempted: the results are to be recorded together.
    AttemptedBatch(Vec<AttemptResult>),
    /// A batch was not.
    UnusedBatch(Vec<Lease>),
}

impl Ended {
    /// Whether another delivery waits for this to be recorded: the next of its lane, or one of a backlog, unless the attempt took
    /// so long that the wait for others makes no difference.
    fn is_waited_for(&self, backlog: &Backlog, to_lease: &ToLease) -> bool {
        match self {
            Self::Attempted(result) => {
                let is_quick = result.attempt.duration < BATCH_WINDOW * WINDOWS_OF_SLOW_ATTEMPT;
                let lease = &result.lease;
                let has_more = || backlog.waits_for(lease) || to_lease.waits_for(lease);
                lease.in_order || (is_quick && has_more())
            }
            Self::Unused(lease) => lease.in_order,
            // Its lane, or the endpoint, waits for the next one.
            Self::AttemptedBatch(_) | Self::UnusedBatch(_) => true,
        }
    }
}

/// An end on its way to the recorder, with its part of the capacity, which is free again when it is recorded.
pub(super) type EndedDelivery = (Ended, ReservedPart);

/// The task that records.
pub(super) struct Recorder {
    /// Of which webhooks more is due than may be leased before results are recorded.
    pub(super) backlog: watch::Receiver<Backlog>,
    pub(super) limiter: EndpointLimiter,
    pub(super) store: Store,
    pub(super) metrics: Metrics,
    pub(super) clock: Clock,
    pub(super) outage: OutageLog,
    pub(super) recoveries: Recoveries,
    /// Told of the webhooks for which there is capacity again.
    pub(super) to_lease: Arc<ToLease>,
}

impl Recorder {
    /// Records until the last attempt is over.
    pub(super) async fn run(mut self, mut ended: mpsc::Receiver<EndedDelivery>) {
        let mut batch = Vec::new();
        while ended.recv_many(&mut batch, MAX_BATCH).await > 0 {
            let waiting = (&self.backlog, &*self.to_lease);
            collect_batch(waiting, &mut ended, &mut batch).await;
            let (ends, reserved): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
            let (results, unused) = split(ends);
            match self.record(&results, &unused).await {
                Ok(()) => self.outage.recovered(),
                Err(error) => {
                    self.metrics.store_failed(&error);
                    self.outage.failed(error.outage(), &error);
                }
            }
            drop(reserved);
            let leases = results.iter().map(|result| &result.lease);
            self.to_lease.tell(&leases.chain(&unused).collect());
        }
        self.recoveries.finish().await;
    }

    async fn record(
        &mut self,
        results: &[AttemptResult],
        unused: &[Lease],
    ) -> Result<(), StoreError> {
        let most = self.recoveries.most_in_round;
        let recording = self.store.record_pulling(results, &next_state, most);
        let recorded = recording.await?;
        for change in &recorded.endpoints {
            self.act_on(change);
        }
        let counted = results.iter().zip(&recorded.counted);
        for (result, _) in counted.filter(|(_, counted)| **counted) {
            self.metrics.recorded(&result.outcome);
        }
        self.recoveries.go_on(recorded.recovering);
        let now = Timestamp::from(self.clock.now());
        self.store.release(unused, now).await
    }

    fn act_on(&self, change: &EndpointChange) {
        let EndpointChange {
            webhook,
            before,
            after,
        } = change;
        if after.paused_until.is_some() {
            self.limiter.pause(webhook);
        }
        if after.breaker != before.breaker {
            let (from, to) = (before.breaker.name(), after.breaker.name());
            tracing::info!(%webhook, from, to, trips = after.trips, "breaker");
        }
    }
}

/// Waits for more results to record in one transaction: the processor is needed for what is still to be sent, and
/// many results in one transaction cost less than few.
pub(super) async fn collect_batch(
    (backlog, to_lease): (&watch::Receiver<Backlog>, &ToLease),
    ended: &mut mpsc::Receiver<EndedDelivery>,
    batch: &mut Vec<EndedDelivery>,
) {
    let end = Instant::now() + BATCH_WINDOW;
    let mut seen = 0;
    loop {
        let is_waited_for = {
            let backlog = backlog.borrow();
            let mut new = batch.iter().skip(seen);
            new.any(|(ended, _)| ended.is_waited_for(&backlog, to_lease))
        };
        seen = batch.len();
        if is_waited_for || seen >= MAX_BATCH {
            return;
        }
        let idle = end.min(Instant::now() + IDLE_WINDOW);
        let more = ended.recv_many(batch, MAX_BATCH - seen);
        if !matches!(timeout_at(idle, more).await, Ok(1..)) {
            return;
        }
    }
}

/// What was attempted, and what was not.
fn split(batch: Vec<Ended>) -> (Vec<AttemptResult>, Vec<Lease>) {
    let (mut results, mut unused) = (Vec::new(), Vec::new());
    for ended in batch {
        match ended {
            Ended::Attempted(result) => results.push(*result),
            Ended::Unused(lease) => unused.push(lease),
            Ended::AttemptedBatch(batch) => results.extend(batch),
            Ended::UnusedBatch(leases) => unused.extend(leases),
        }
    }
    (results, unused)
}

/// The state of an endpoint after a result.
fn next_state(state: EndpointState, result: &AttemptResult) -> EndpointState {
    if matches!(result.outcome, Outcome::Gone { .. }) {
        // The webhook is off. Nothing of this must be in the way of its being switched on again.
        return EndpointState::default();
    }
    let Some(observation) = result.observation else {
        return state;
    };
    let attempt = &result.attempt;
    let took = (attempt.started, attempt.ended());
    let in_order = result.lease.in_order;
    breaker::on_attempt(
        state,
        observation,
        took,
        MAX_IN_FLIGHT,
        in_order,
        result.jitter,
    )
}

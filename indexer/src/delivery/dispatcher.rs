//! Dispatcher: leases due deliveries, makes one attempt for each, reports to the recorder.
//!
//! A lease outlives the deadline of its attempt. A process that dies in between leaves a lease that runs out, and the
//! message is delivered again, with the same id and the same bytes.

use std::{pin::pin, sync::Arc, time::Duration};

use service_kit::{CancellationToken, Clock, OutageLog};
use sluice_store::{
    Attempt, AttemptResult, LeasedDelivery, Load, MessageId, Outcome, PendingLeases, Store,
    StoreError, Timestamp, WebhookSet,
};
use sluice_webhook_client::{Client, WebhookRequest, batch_body, batch_id, payload};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    task::{JoinError, JoinSet},
    time::{sleep, timeout},
};

use super::{
    backlog::Backlog,
    batches,
    capacity::{
        DispatchCapacity, PERMIT_PATIENCE, Reservation, ReservedDelivery, ReservedPart, Submissions,
    },
    limiter::{EndpointLimiter, EndpointPermits},
    limits::{MAX_IN_FLIGHT, MAX_LEASED, MAX_LEASED_BYTES},
    recorder::{Ended, EndedDelivery, Recorder},
    recoveries::Recoveries,
    retry,
    wakes::{Wake, Wakes},
};
use crate::{
    metrics::{Metrics, Stage},
    to_lease::ToLease,
    traces::MessageTraces,
};

/// Deliveries leased in one transaction, so that the first of a long queue are in flight while the others are leased.
const MAX_LEASE: usize = 512;

/// Bytes of their bodies, so that a part of [`MAX_LEASED_BYTES`] is left to what is stored meanwhile.
const MAX_LEASE_BYTES: u64 = MAX_LEASED_BYTES / 4;

/// How much longer than the longest deadline of an attempt a shutdown waits for those in flight: time to end them and to hand
/// over their results. The leases of what is left then are released.
const DRAIN_MARGIN: Duration = Duration::from_secs(2);

/// The task that delivers.
#[derive(Debug)]
pub struct Dispatcher {
    /// The store with the deliveries.
    pub store: Store,
    /// Makes the attempts.
    pub client: Client,
    /// Pauses before the attempts.
    pub schedule: Arc<[Duration]>,
    /// Deliveries that one transaction makes due when their endpoint accepts again; more are made due by several.
    pub most_pulled: u32,
    /// Told of the webhooks whose messages are inserted and not submitted, and by the recorder of those with results.
    pub to_lease: Arc<ToLease>,
    /// Metrics of attempts.
    pub metrics: Metrics,
    /// Traces of the messages.
    pub traces: MessageTraces,
    /// The time of day.
    pub clock: Clock,
}

/// When to stop.
#[derive(Debug)]
struct Stop {
    /// No attempt is begun any more.
    shutdown: CancellationToken,
    /// Attempts in flight are broken off.
    abandon: CancellationToken,
}

impl Dispatcher {
    /// Delivers what is submitted and what is due until `shutdown`, then lets attempts in flight finish.
    pub async fn run(self, submissions: Submissions, shutdown: CancellationToken) {
        let (ended, to_record) = mpsc::channel(MAX_LEASED);
        let (backlog, recorder_sees) = watch::channel(Backlog::default());
        let limiter = EndpointLimiter::new(usize::try_from(MAX_IN_FLIGHT).unwrap_or(usize::MAX));
        let recorder = Recorder {
            backlog: recorder_sees,
            limiter: limiter.clone(),
            store: self.store.clone(),
            metrics: self.metrics.clone(),
            clock: self.clock.clone(),
            outage: OutageLog::new("recording deliveries"),
            recoveries: Recoveries::new(self.store.clone(), self.most_pulled),
            to_lease: Arc::clone(&self.to_lease),
        };
        let recorder = tokio::spawn(recorder.run(to_record));
        let to_lease = Arc::clone(&self.to_lease);
        let mut wakes = Wakes::new(submissions, to_lease, shutdown.clone());
        let dispatcher = Arc::new(self);
        let mut in_flight = InFlight {
            dispatcher: Arc::clone(&dispatcher),
            limiter,
            ended,
            stop: Arc::new(Stop {
                shutdown,
                abandon: CancellationToken::new(),
            }),
            attempts: JoinSet::new(),
            loading: JoinSet::new(),
            outage: OutageLog::new("delivering webhooks"),
        };
        while let Some(wake) = wakes.next().await {
            let of = match wake {
                Wake::Submitted(deliveries) => {
                    in_flight.begin(deliveries);
                    continue;
                }
                Wake::ToLease(webhooks) => Some(webhooks),
                Wake::Tick => None,
            };
            let submissions = &mut wakes.submissions;
            let leasing = dispatcher.lease_all(of.as_ref(), submissions, &mut in_flight, &backlog);
            leasing.await;
            in_flight.tidy();
        }
        in_flight.loaded().await;
        // The leases of what was submitted at the last moment are released.
        let submitted = &mut wakes.submissions.submitted;
        submitted.close();
        while let Some(deliveries) = submitted.recv().await {
            in_flight.begin(deliveries);
        }
        in_flight.finish().await;
        if let Err(error) = recorder.await {
            tracing::error!(%error, "the task that records deliveries broke off");
        }
    }

    /// Begins with what is due, of these webhooks or of all, as far as there is capacity, and notes of which webhooks there was
    /// anything. What is submitted meanwhile does not wait for the database.
    async fn lease_all(
        &self,
        of: Option<&WebhookSet>,
        submissions: &mut Submissions,
        in_flight: &mut InFlight,
        backlog: &watch::Sender<Backlog>,
    ) {
        while !in_flight.stop.shutdown.is_cancelled() {
            let mut leasing = pin!(self.lease(of, &submissions.capacity));
            let leased = loop {
                tokio::select! {
                    leased = &mut leasing => break leased,
                    Some(deliveries) = submissions.submitted.recv() => in_flight.begin(deliveries),
                }
            };
            match leased {
                Ok(granted) => {
                    in_flight.outage.recovered();
                    let Some((leases, among, reservation)) = granted else {
                        backlog.send_modify(Backlog::without_capacity);
                        break;
                    };
                    backlog.send_modify(|backlog| backlog.found(among, leases.due()));
                    let leased = leases.load();
                    if leased.deliveries > 0 {
                        in_flight.load(leases, reservation);
                    }
                    if !is_full(leased) {
                        break;
                    }
                }
                Err(error) => {
                    self.metrics.store_failed(&error);
                    in_flight.outage.failed(error.outage(), &error);
                    break;
                }
            }
        }
    }

    /// Leases under a reservation, and the webhooks that were looked at. `None` when there is no capacity.
    async fn lease<'w>(
        &self,
        of: Option<&'w WebhookSet>,
        capacity: &DispatchCapacity,
    ) -> Result<Option<(PendingLeases, Option<&'w WebhookSet>, Reservation)>, StoreError> {
        let now = Timestamp::from(self.clock.now());
        let Some(mut reservation) = capacity.reserve(MAX_LEASE, MAX_LEASE_BYTES, now) else {
            return Ok(None);
        };
        // What runs short goes to those whose turn it is.
        let of = of.filter(|_| reservation.is_whole());
        let request = reservation.lease_request();
        let leases = self.store.lease_due_pending(of, request).await?;
        reservation.narrow(leases.loads());
        Ok(Some((leases, of, reservation)))
    }

    /// One attempt, or none when there is no permit for it or it is broken off.
    async fn attempt(
        self: Arc<Self>,
        delivery: LeasedDelivery,
        permits: EndpointPermits,
        stop: Arc<Stop>,
    ) -> Ended {
        let permit = self.permit_in_turn(&permits, delivery.turn, &stop).await;
        let Some(_permit) = permit else {
            return Ended::Unused(delivery.lease);
        };
        let body = payload(&delivery.body, &delivery.options);
        let request = request(&delivery, &delivery.lease.id, &body);
        let Some(attempt) = self.post(&request, &stop).await else {
            return Ended::Unused(delivery.lease);
        };
        Ended::Attempted(Box::new(self.judge(delivery, attempt, rand::random())))
    }

    /// One attempt for all of a batch, or none, as [`Dispatcher::attempt`].
    async fn attempt_batch(
        self: Arc<Self>,
        batch: Vec<LeasedDelivery>,
        permits: EndpointPermits,
        stop: Arc<Stop>,
    ) -> Ended {
        let turn = batch.first().and_then(|first| first.turn);
        let permit = self.permit_in_turn(&permits, turn, &stop).await;
        let attempt = match (permit, batch.first()) {
            (Some(_permit), Some(first)) => {
                let id = batch_id(batch.iter().map(|each| &each.lease.id));
                let bodies: Vec<_> = batch
                    .iter()
                    .map(|each| payload(&each.body, &each.options))
                    .collect();
                let ids = batch.iter().map(|each| &each.lease.id);
                let body = batch_body(ids.zip(bodies.iter().map(|body| &**body)));
                self.post(&request(first, &id, &body), &stop).await
            }
            _ => None,
        };
        match attempt {
            Some(attempt) => Ended::AttemptedBatch(self.judge_batch(batch, attempt)),
            None => Ended::UnusedBatch(batch.into_iter().map(|each| each.lease).collect()),
        }
    }

    /// A permit, when the turn of the attempt has come.
    async fn permit_in_turn(
        &self,
        permits: &EndpointPermits,
        turn: Option<Timestamp>,
        stop: &Stop,
    ) -> Option<OwnedSemaphorePermit> {
        let permit = permit(permits, stop).await?;
        let Some(turn) = turn else {
            return Some(permit);
        };
        let wait = turn.unix_millis() - Timestamp::from(self.clock.now()).unix_millis();
        // Negative when it has passed.
        let wait = Duration::from_millis(u64::try_from(wait).unwrap_or(0));
        tokio::select! {
            () = sleep(wait.min(PERMIT_PATIENCE)) => Some(permit),
            () = stop.shutdown.cancelled() => None,
        }
    }

    /// `None` when it is broken off.
    async fn post(&self, request: &WebhookRequest<'_>, stop: &Stop) -> Option<Attempt> {
        let started = Timestamp::from(self.clock.now());
        // Boxed when there is a permit, so that those who wait for one are small.
        let post = Box::pin(self.client.post(request, self.clock.time_of_day()));
        tokio::select! {
            attempt = post => Some(Attempt { started, ..attempt }),
            () = stop.abandon.cancelled() => None,
        }
    }

    /// The results of an attempt for the messages of a batch. The first one speaks for the endpoint and keeps the text of the
    /// answer; all are due again at the same time.
    fn judge_batch(&self, batch: Vec<LeasedDelivery>, attempt: Attempt) -> Vec<AttemptResult> {
        let jitter = rand::random();
        let others = Attempt {
            response: None,
            response_cut: false,
            ..attempt.clone()
        };
        let attempts = std::iter::once(attempt).chain(std::iter::repeat(others));
        let results = batch.into_iter().zip(attempts).enumerate();
        results
            .map(|(nth, (delivery, attempt))| {
                let mut result = self.judge(delivery, attempt, jitter);
                if nth > 0 {
                    result.observation = None;
                }
                result
            })
            .collect()
    }

    fn judge(&self, delivery: LeasedDelivery, attempt: Attempt, jitter: u32) -> AttemptResult {
        if delivery.retry_index == 0 {
            let waited = attempt.started.unix_millis() - delivery.created.unix_millis();
            let waited = Duration::from_millis(u64::try_from(waited).unwrap_or(0));
            self.metrics.took(Stage::Pending, waited);
        }
        self.metrics.took(Stage::Attempted, attempt.duration);
        if attempt.accepted() {
            let whole = attempt.ended().unix_millis() - delivery.created.unix_millis();
            let whole = Duration::from_millis(u64::try_from(whole).unwrap_or(0));
            self.metrics.took(Stage::Delivered, whole);
        }
        let own = delivery.options.retry_pauses();
        let own = own.map(|pauses| retry::schedule(Some(pauses)));
        let schedule = own.as_ref().unwrap_or(&self.schedule);
        let outcome = retry::outcome(&attempt, delivery.retry_index, schedule, jitter);
        let outcome = match delivery.ahead_of {
            Some(own) => retry::ahead_of(own, outcome),
            None => outcome,
        };
        log(&delivery, &attempt, &outcome);
        self.traces
            .attempted(&delivery.lease, &attempt, delivery.retry_index);
        AttemptResult::new(delivery.lease, attempt, outcome, rand::random())
    }
}

/// The request of an attempt at a delivery, under this id and with this body.
fn request<'a>(
    delivery: &'a LeasedDelivery,
    id: &'a MessageId,
    body: &'a str,
) -> WebhookRequest<'a> {
    WebhookRequest {
        id,
        url: &delivery.url,
        secrets: &delivery.secrets,
        headers: &delivery.headers,
        gzip: delivery.gzip,
        options: &delivery.options,
        body,
    }
}

/// Whether there may be more where these came from.
fn is_full(leased: Load) -> bool {
    // The next one may have been too long for the rest.
    let half = leased.bytes >= MAX_LEASE_BYTES / 2;
    usize::try_from(leased.deliveries).is_ok_and(|count| count >= MAX_LEASE) || half
}

async fn permit(permits: &EndpointPermits, stop: &Stop) -> Option<OwnedSemaphorePermit> {
    tokio::select! {
        permit = permits.acquire(PERMIT_PATIENCE) => permit,
        () = stop.shutdown.cancelled() => None,
    }
}

/// Attempts in flight, and those that wait for a permit.
struct InFlight {
    dispatcher: Arc<Dispatcher>,
    limiter: EndpointLimiter,
    ended: mpsc::Sender<EndedDelivery>,
    stop: Arc<Stop>,
    attempts: JoinSet<()>,
    /// Deliveries that are leased and on their way from the database to the submissions.
    loading: JoinSet<Result<(), StoreError>>,
    outage: OutageLog,
}

impl InFlight {
    /// Submits the deliveries of these leases when they are loaded. More can be leased meanwhile.
    fn load(&mut self, leases: PendingLeases, reservation: Reservation) {
        self.loading.spawn(async move {
            reservation.submit(leases.deliveries().await?);
            Ok(())
        });
    }

    /// Waits until what is leased is submitted.
    async fn loaded(&mut self) {
        while let Some(ended) = self.loading.join_next().await {
            self.note_loaded(ended);
        }
    }

    fn note_loaded(&mut self, ended: Result<Result<(), StoreError>, JoinError>) {
        match ended {
            Ok(Ok(())) => {}
            // Their deliveries are due again when the leases run out.
            Ok(Err(error)) => {
                self.dispatcher.metrics.store_failed(&error);
                self.outage.failed(error.outage(), &error);
            }
            Err(error) => log_broken(Err(error), &mut self.outage),
        }
    }

    fn begin(&mut self, deliveries: Vec<ReservedDelivery>) {
        let (batched, alone): (Vec<_>, Vec<_>) = deliveries
            .into_iter()
            .partition(|each| each.delivery.batch.is_some());
        for batch in batches::put_together(batched, |each| &each.delivery) {
            self.begin_batch(batch);
        }
        for ReservedDelivery { delivery, reserved } in alone {
            let permits = self.limiter.resume(&delivery);
            let dispatcher = Arc::clone(&self.dispatcher);
            let attempt = dispatcher.attempt(delivery, permits, Arc::clone(&self.stop));
            let ended = self.ended.clone();
            self.attempts.spawn(async move {
                // Fails only when the recorder broke off; the lease runs out then.
                let _ = ended.send((attempt.await, reserved)).await;
            });
        }
    }

    fn begin_batch(&mut self, batch: Vec<ReservedDelivery>) {
        let mut reserved = None;
        let mut deliveries = Vec::with_capacity(batch.len());
        for each in batch {
            deliveries.push(each.delivery);
            reserved = Some(match reserved {
                None => each.reserved,
                Some(part) => ReservedPart::and(part, each.reserved),
            });
        }
        let (Some(first), Some(reserved)) = (deliveries.first(), reserved) else {
            return;
        };
        let permits = self.limiter.resume(first);
        let dispatcher = Arc::clone(&self.dispatcher);
        let attempt = dispatcher.attempt_batch(deliveries, permits, Arc::clone(&self.stop));
        let ended = self.ended.clone();
        self.attempts.spawn(async move {
            let _ = ended.send((attempt.await, reserved)).await;
        });
    }

    /// Drops the tasks that are over, and the endpoints without any.
    fn tidy(&mut self) {
        while let Some(ended) = self.loading.try_join_next() {
            self.note_loaded(ended);
        }
        while let Some(ended) = self.attempts.try_join_next() {
            log_broken(ended, &mut self.outage);
        }
        if self.attempts.is_empty() {
            self.limiter.drop_idle();
        }
    }

    /// Waits for the attempts in flight, and breaks them off when that takes too long.
    async fn finish(mut self) {
        let patience = self.dispatcher.client.deadline() + DRAIN_MARGIN;
        let drained = timeout(patience, self.drain()).await;
        if drained.is_err() {
            self.stop.abandon.cancel();
            self.drain().await;
        }
    }

    async fn drain(&mut self) {
        while let Some(ended) = self.attempts.join_next().await {
            log_broken(ended, &mut self.outage);
        }
    }
}

/// Logs tasks that broke off; the leases of their deliveries run out and the messages are delivered again.
fn log_broken(ended: Result<(), JoinError>, outage: &mut OutageLog) {
    if let Err(error) = ended {
        outage.failed("a task broke off", &error);
    }
}

/// Endpoints fail all the time and are retried; only what ends the retries is worth a warning.
fn log(delivery: &LeasedDelivery, attempt: &Attempt, outcome: &Outcome) {
    let (id, webhook) = (&delivery.lease.id, &delivery.lease.webhook);
    let number = delivery.retry_index.saturating_add(1);
    let fault = attempt.error.as_deref().unwrap_or_default();
    match outcome {
        Outcome::Delivered => {
            let millis = attempt.duration.as_millis();
            tracing::debug!(%id, %webhook, number, millis, "delivered");
        }
        Outcome::Retry { at } | Outcome::Early { at } => {
            tracing::debug!(%id, %webhook, number, fault, %at, "not delivered yet");
        }
        Outcome::Failed => {
            tracing::warn!(%id, %webhook, number, fault, "failed after the last attempt");
        }
        Outcome::Gone { reason, .. } => tracing::warn!(%webhook, reason, "webhook switched off"),
    }
}

#[cfg(test)]
mod tests;

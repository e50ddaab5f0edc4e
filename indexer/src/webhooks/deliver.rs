//! The workers: claim what is due, drive one attempt, record what it means.
//!
//! A claim is a lease that outlives the deadline of an attempt. A worker that dies in between leaves a
//! lease that runs out, and the message is delivered again, with the same id and the same bytes. Results are
//! recorded in batches: those that come in while one batch is written make the next.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use service_kit::CancellationToken;
use sluice_store::{
    Claim, ClaimLimits, ClaimedDelivery, EndpointState, Finished, Lease, MessageId, Outcome, Store,
    StoreError, Ticket, Timestamp,
};
use sluice_webhook_client::{Attempted, Client, Delivery};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    breaker::{self, Observation},
    gates::{Gate, Gates},
    retry,
};
use crate::{
    incident::Incident,
    metrics::{Metrics, Stage},
};

/// Messages claimed at once: each is a few kilobytes, and a socket when its turn has come.
pub const MAX_CLAIMED: usize = 8192;

/// Attempts under way at once to one webhook. Receivers in one data centre with Sluice answer in a
/// millisecond, those on another continent in two hundred: eighty messages a second for them.
pub const MAX_PER_WEBHOOK: u32 = 16;

/// Messages of one webhook that are claimed at once: what a receiver that hangs can take from the others.
/// Eight rounds of attempts, so that a fast receiver need not wait for the database after each, and claims and
/// records are large.
pub const MAX_CLAIMED_PER_WEBHOOK: u32 = 8 * MAX_PER_WEBHOOK;

/// Messages taken in one claim, so that a claim is quick, and the first of a slot are under way while the others are
/// claimed.
const MAX_CLAIM: usize = 128;

/// How long a claimed message may wait for its turn before it goes back to the queue. The lease must
/// outlive this and the attempt.
const TURN_PATIENCE: Duration = Duration::from_secs(5);

/// Results recorded in one transaction.
const MAX_RECORDED: usize = 512;

/// How often due retries are looked for. New messages of this process do not wait for it.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How much longer than the wait for its turn and the deadline of its attempt a lease lasts: time to record
/// the result on a busy machine.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// How long a shutdown waits for attempts under way. What is left then goes back to the queue.
const DRAIN_DEADLINE: Duration = Duration::from_secs(5);

/// The task that delivers.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    /// Where messages wait.
    pub store: Store,
    /// How they are sent.
    pub client: Client,
    /// Pauses before the attempts.
    pub schedule: Arc<[Duration]>,
    /// Notified when new messages are stored.
    pub stored: Arc<Notify>,
    /// Counts.
    pub metrics: Metrics,
}

/// What became of a claimed message.
enum Done {
    /// An attempt was made.
    Attempted(Box<Finished>, Observation),
    /// It was not, and the message is to be given back.
    Abandoned(Ticket),
}

/// When to stop.
#[derive(Clone, Debug)]
struct Stop {
    /// Nothing is begun any more.
    shutdown: CancellationToken,
    /// What is under way is broken off.
    abandon: CancellationToken,
}

/// A result on its way to the recorder. The permit returns when it is recorded.
type Report = (Done, OwnedSemaphorePermit);

impl Dispatcher {
    /// Delivers until `shutdown`, then lets attempts under way finish for a while.
    pub async fn run(self, shutdown: CancellationToken) {
        let room = Arc::new(Semaphore::new(MAX_CLAIMED));
        let recorded = Arc::new(Notify::new());
        let (reports, results) = mpsc::channel(MAX_CLAIMED);
        let width = usize::try_from(MAX_PER_WEBHOOK).unwrap_or(usize::MAX);
        let gates = Gates::new(width);
        let recorder = Recorder {
            gates: gates.clone(),
            store: self.store.clone(),
            metrics: self.metrics.clone(),
            incident: Incident::new("recording deliveries"),
            recorded: Arc::clone(&recorded),
        };
        let recorder = tokio::spawn(recorder.run(results));
        let stop = Stop {
            shutdown,
            abandon: CancellationToken::new(),
        };
        let mut incident = Incident::new("delivering webhooks");
        let mut attempts = JoinSet::new();
        while !stop.shutdown.is_cancelled() {
            let mut more = false;
            match self.claim(room.available_permits()).await {
                Ok(claimed) => {
                    incident.recovered();
                    more = claimed.len() >= MAX_CLAIM;
                    for delivery in claimed {
                        // There is one for each, because nobody else takes any.
                        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
                            break;
                        };
                        let gate = gates.open(&delivery.ticket.webhook);
                        let attempt = self.clone().attempt(delivery, gate, stop.clone());
                        let reports = reports.clone();
                        attempts.spawn(async move {
                            // Fails only when the recorder broke off; the lease runs out then.
                            let _ = reports.send((attempt.await, permit)).await;
                        });
                    }
                }
                Err(error) => incident.failed("the database does not answer", &error),
            }
            if !more {
                tokio::select! {
                    () = stop.shutdown.cancelled() => {}
                    () = self.stored.notified() => {}
                    () = recorded.notified() => {}
                    () = sleep(POLL_INTERVAL) => {}
                }
            }
            while let Some(done) = attempts.try_join_next() {
                note(done, &mut incident);
            }
            if attempts.is_empty() {
                gates.tidy();
            }
        }
        drop(reports);
        let drained = timeout(DRAIN_DEADLINE, drain(&mut attempts, &mut incident)).await;
        if drained.is_err() {
            stop.abandon.cancel();
            drain(&mut attempts, &mut incident).await;
        }
        note(recorder.await, &mut incident);
    }

    async fn claim(&self, room: usize) -> Result<Vec<ClaimedDelivery>, StoreError> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let now = Timestamp::from(SystemTime::now());
        let limits = ClaimLimits {
            total: u32::try_from(room.min(MAX_CLAIM)).unwrap_or(u32::MAX),
            per_webhook: MAX_CLAIMED_PER_WEBHOOK,
        };
        let claim = Claim {
            now,
            until: now.after(TURN_PATIENCE + self.client.deadline() + LEASE_MARGIN),
            lease: Lease::from_random(rand::random()),
            limits,
        };
        self.store.claim_due(&claim).await
    }

    /// One attempt, or none when its turn does not come or it is abandoned.
    async fn attempt(self, claimed: ClaimedDelivery, gate: Gate, stop: Stop) -> Done {
        let place = tokio::select! {
            place = gate.pass(TURN_PATIENCE) => place,
            () = stop.shutdown.cancelled() => None,
        };
        let Some(_place) = place else {
            return Done::Abandoned(claimed.ticket);
        };
        let delivery = Delivery {
            id: &claimed.ticket.id,
            url: &claimed.ticket.url,
            secrets: &claimed.secrets,
            headers: &claimed.headers,
            gzip: claimed.gzip,
            body: &claimed.body,
        };
        let attempted = tokio::select! {
            attempted = self.client.deliver(&delivery) => attempted,
            () = stop.abandon.cancelled() => return Done::Abandoned(claimed.ticket),
        };
        let attempt = &attempted.attempt;
        if claimed.attempts_before == 0 {
            let waited = attempt.started.unix_millis() - claimed.created.unix_millis();
            let waited = Duration::from_millis(u64::try_from(waited).unwrap_or(0));
            self.metrics.took(Stage::Queued, waited);
        }
        self.metrics.took(Stage::Attempt, attempt.duration);
        let outcome = retry::judge(
            &attempted,
            claimed.attempts_before,
            &self.schedule,
            attempt.started.after(attempt.duration),
            rand::random(),
        );
        log(&claimed, &attempted, &outcome);
        let observation = Observation::of(&attempted);
        let finished = Finished {
            ticket: claimed.ticket,
            attempt: attempted.attempt,
            outcome,
        };
        Done::Attempted(Box::new(finished), observation)
    }
}

async fn drain(attempts: &mut JoinSet<()>, incident: &mut Incident) {
    while let Some(done) = attempts.join_next().await {
        note(done, incident);
    }
}

/// Tells of tasks that broke off; the leases of their messages run out and the messages are repeated.
fn note(done: Result<(), tokio::task::JoinError>, incident: &mut Incident) {
    if let Err(error) = done {
        incident.failed("a task broke off", &error);
    }
}

/// The task that records.
struct Recorder {
    gates: Gates,
    store: Store,
    metrics: Metrics,
    incident: Incident,
    recorded: Arc<Notify>,
}

impl Recorder {
    /// Records until the last attempt is over.
    async fn run(mut self, mut results: mpsc::Receiver<Report>) {
        let mut batch = Vec::new();
        while results.recv_many(&mut batch, MAX_RECORDED).await > 0 {
            let reports = std::mem::take(&mut batch);
            match self.record(&reports).await {
                Ok(()) => self.incident.recovered(),
                Err(error) => self.incident.failed("the database does not answer", &error),
            }
            drop(reports);
            self.recorded.notify_one();
        }
    }

    async fn record(&self, reports: &[Report]) -> Result<(), StoreError> {
        let (mut finished, mut released) = (Vec::new(), Vec::new());
        let mut observed: HashMap<MessageId, (Observation, u32)> = HashMap::new();
        for (done, _) in reports {
            match done {
                Done::Abandoned(ticket) => released.push(ticket.clone()),
                Done::Attempted(each, observation) => {
                    observed.insert(each.ticket.id.clone(), (*observation, rand::random()));
                    finished.push(Finished::clone(each));
                }
            }
        }
        let judge = |state: EndpointState, each: &Finished| {
            let next = endpoint(state, each, &observed);
            if next.paused_until.is_some() {
                self.gates.close(&each.ticket.webhook);
            }
            next
        };
        let counted = self.store.record(&finished, &judge).await?;
        for (each, _) in finished.iter().zip(counted).filter(|(_, counted)| *counted) {
            self.metrics.attempt(&each.outcome);
        }
        let now = Timestamp::from(SystemTime::now());
        self.store.release(&released, now).await
    }
}

/// How a receiver does after an attempt.
fn endpoint(
    state: EndpointState,
    finished: &Finished,
    observed: &HashMap<MessageId, (Observation, u32)>,
) -> EndpointState {
    if matches!(finished.outcome, Outcome::Gone { .. }) {
        // The webhook is off. Nothing of this must be in the way of its being switched on again.
        return EndpointState::default();
    }
    let Some((observation, random)) = observed.get(&finished.ticket.id) else {
        return state;
    };
    let started = finished.attempt.started;
    let ended = started.after(finished.attempt.duration);
    let next = breaker::after(
        state,
        *observation,
        (started, ended),
        MAX_PER_WEBHOOK,
        *random,
    );
    if next.breaker != state.breaker {
        let (webhook, openings) = (&finished.ticket.webhook, next.openings);
        tracing::info!(%webhook, from = state.breaker.name(), to = next.breaker.name(), openings, "breaker");
    }
    next
}

/// Receivers fail all the time and are retried; only what ends the retries is worth a warning.
fn log(delivery: &ClaimedDelivery, attempted: &Attempted, outcome: &Outcome) {
    let (id, webhook) = (&delivery.ticket.id, &delivery.ticket.webhook);
    let number = delivery.attempts_before.saturating_add(1);
    let fault = attempted.attempt.error.as_deref().unwrap_or_default();
    match outcome {
        Outcome::Accepted => {
            let millis = attempted.attempt.duration.as_millis();
            tracing::debug!(%id, %webhook, number, millis, "delivered");
        }
        Outcome::Retry { at } => {
            tracing::debug!(%id, %webhook, number, fault, %at, "not delivered yet");
        }
        Outcome::Exhausted => {
            tracing::warn!(%id, %webhook, number, fault, "given up after the last attempt");
        }
        Outcome::Gone { reason, .. } => tracing::warn!(%webhook, reason, "webhook switched off"),
    }
}

#[cfg(test)]
#[path = "deliver_tests/mod.rs"]
mod tests;

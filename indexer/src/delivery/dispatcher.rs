//! The workers: take what is handed in or due, drive one attempt, report what became of it.
//!
//! A claim is a lease that outlives the deadline of an attempt. A worker that dies in between leaves a
//! lease that runs out, and the message is delivered again, with the same id and the same bytes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use service_kit::{CancellationToken, OutageLog};
use sluice_store::{ClaimedDelivery, Finished, Outcome, Store, StoreError};
use sluice_webhook_client::{Attempted, Client, Delivery};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    breaker::Observation,
    capacity::{Claimed, Intake, MAX_CLAIMED, MAX_PER_WEBHOOK, Room, TURN_PATIENCE},
    limiter::{Gate, Gates},
    recorder::{Done, Recorder, Report},
    retry,
};
use crate::metrics::{Metrics, Stage};

/// Messages taken in one claim, so that the first of a long queue are under way while the others are claimed.
const MAX_CLAIM: usize = 512;

/// How often due retries are looked for. New messages of this process do not wait for it.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How long a shutdown waits for attempts under way. What is left then goes back to the queue.
const DRAIN_DEADLINE: Duration = Duration::from_secs(5);

/// The task that delivers.
#[derive(Debug)]
pub struct Dispatcher {
    /// Where messages wait.
    pub store: Store,
    /// How they are sent.
    pub client: Client,
    /// Pauses before the attempts.
    pub schedule: Arc<[Duration]>,
    /// Notified when messages are stored that are not handed in.
    pub stored: Arc<Notify>,
    /// Counts.
    pub metrics: Metrics,
}

/// When to stop.
#[derive(Debug)]
struct Stop {
    /// Nothing is begun any more.
    shutdown: CancellationToken,
    /// What is under way is broken off.
    abandon: CancellationToken,
}

impl Dispatcher {
    /// Delivers what is handed in and what is due until `shutdown`, then lets attempts under way finish for a while.
    pub async fn run(self, mut intake: Intake, shutdown: CancellationToken) {
        let recorded = Arc::new(Notify::new());
        let (reports, results) = mpsc::channel(MAX_CLAIMED);
        let width = usize::try_from(MAX_PER_WEBHOOK).unwrap_or(usize::MAX);
        let gates = Gates::new(width);
        let backlog = Arc::new(AtomicBool::new(false));
        let recorder = Recorder {
            backlog: Arc::clone(&backlog),
            gates: gates.clone(),
            store: self.store.clone(),
            metrics: self.metrics.clone(),
            outage: OutageLog::new("recording deliveries"),
            recorded: Arc::clone(&recorded),
        };
        let recorder = tokio::spawn(recorder.run(results));
        let stop = Arc::new(Stop {
            shutdown,
            abandon: CancellationToken::new(),
        });
        let dispatcher = Arc::new(self);
        let mut under_way = UnderWay {
            dispatcher: Arc::clone(&dispatcher),
            gates,
            reports,
            stop: Arc::clone(&stop),
            attempts: JoinSet::new(),
            outage: OutageLog::new("delivering webhooks"),
        };
        let mut glances = interval(POLL_INTERVAL);
        glances.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.shutdown.is_cancelled() {
            let stored = tokio::select! {
                () = stop.shutdown.cancelled() => break,
                Some(claimed) = intake.handed.recv() => {
                    under_way.begin(claimed);
                    continue;
                }
                () = dispatcher.stored.notified() => true,
                () = recorded.notified() => false,
                _ = glances.tick() => false,
            };
            let found = dispatcher.claim_all(&intake.room, &mut under_way).await;
            backlog.store(found || stored, Ordering::Relaxed);
            under_way.tidy();
        }
        // What was handed in at the last moment goes back to the queue.
        intake.handed.close();
        while let Some(claimed) = intake.handed.recv().await {
            under_way.begin(claimed);
        }
        under_way.finish().await;
        if let Err(error) = recorder.await {
            tracing::error!(%error, "the task that records deliveries broke off");
        }
    }

    /// Begins with what is due, as far as there is room. Returns whether there was anything.
    async fn claim_all(&self, room: &Room, under_way: &mut UnderWay) -> bool {
        let mut found = false;
        while !under_way.stop.shutdown.is_cancelled() {
            match self.claim(room).await {
                Ok(claimed) => {
                    under_way.outage.recovered();
                    found |= !claimed.is_empty();
                    let more = claimed.len() >= MAX_CLAIM;
                    under_way.begin(claimed);
                    if !more {
                        break;
                    }
                }
                Err(error) => {
                    let outage = &mut under_way.outage;
                    outage.failed("the database does not answer", &error);
                    break;
                }
            }
        }
        found
    }

    async fn claim(&self, room: &Room) -> Result<Vec<Claimed>, StoreError> {
        let Some(places) = room.take(MAX_CLAIM) else {
            return Ok(Vec::new());
        };
        let claimed = self.store.claim_due(&places.claim()).await?;
        Ok(places.fill(claimed))
    }

    /// One attempt, or none when its turn does not come or it is abandoned.
    async fn attempt(
        self: Arc<Self>,
        claimed: ClaimedDelivery,
        gate: Gate,
        stop: Arc<Stop>,
    ) -> Done {
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
        // Made when its turn has come, so that those who wait are small.
        let deliver = Box::pin(self.client.deliver(&delivery));
        let attempted = tokio::select! {
            attempted = deliver => attempted,
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

/// Attempts under way.
struct UnderWay {
    dispatcher: Arc<Dispatcher>,
    gates: Gates,
    reports: mpsc::Sender<Report>,
    stop: Arc<Stop>,
    attempts: JoinSet<()>,
    outage: OutageLog,
}

impl UnderWay {
    fn begin(&mut self, claimed: Vec<Claimed>) {
        for (delivery, place) in claimed {
            let gate = self.gates.open(&delivery.ticket.webhook);
            let dispatcher = Arc::clone(&self.dispatcher);
            let attempt = dispatcher.attempt(delivery, gate, Arc::clone(&self.stop));
            let reports = self.reports.clone();
            self.attempts.spawn(async move {
                // Fails only when the recorder broke off; the lease runs out then.
                let _ = reports.send((attempt.await, place)).await;
            });
        }
    }

    /// Forgets what is over.
    fn tidy(&mut self) {
        while let Some(done) = self.attempts.try_join_next() {
            note(done, &mut self.outage);
        }
        if self.attempts.is_empty() {
            self.gates.tidy();
        }
    }

    /// Waits for what is under way, and breaks it off when that takes too long.
    async fn finish(mut self) {
        let drained = timeout(DRAIN_DEADLINE, self.drain()).await;
        if drained.is_err() {
            self.stop.abandon.cancel();
            self.drain().await;
        }
    }

    async fn drain(&mut self) {
        while let Some(done) = self.attempts.join_next().await {
            note(done, &mut self.outage);
        }
    }
}

/// Tells of tasks that broke off; the leases of their messages run out and the messages are repeated.
fn note(done: Result<(), tokio::task::JoinError>, outage: &mut OutageLog) {
    if let Err(error) = done {
        outage.failed("a task broke off", &error);
    }
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
mod tests;

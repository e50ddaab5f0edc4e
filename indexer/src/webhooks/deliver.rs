//! The workers: claim what is due, drive one attempt, record what it means.
//!
//! A claim is a lease that outlives the deadline of an attempt. A worker that dies in between leaves a
//! lease that runs out, and the message is delivered again, with the same id and the same bytes.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use service_kit::CancellationToken;
use sluice_store::{Attempt, ClaimLimits, ClaimedDelivery, Outcome, Store, StoreError, Timestamp};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    retry::next_pause,
    send::{Answer, SendError, Sender},
    sign,
};
use crate::incident::Incident;

/// Attempts under way at once. Each is a socket and a few kilobytes; more would only queue in the
/// network.
pub const MAX_IN_FLIGHT: usize = 512;

/// Attempts under way at once to one webhook: what a receiver that hangs can take from the others.
pub const MAX_PER_WEBHOOK: u32 = 8;

/// Messages taken in one claim, so that their bodies do not all wait in memory.
const MAX_CLAIM: usize = 64;

/// How often due retries are looked for. New messages do not wait for it.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How much longer than an attempt's deadline its lease lasts: time to record the result on a busy
/// machine.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// How long a shutdown waits for attempts under way. What is left then goes back to the queue.
const DRAIN_DEADLINE: Duration = Duration::from_secs(5);

/// Status by which a receiver says that it wants nothing any more.
const GONE: u16 = 410;

/// The task that delivers.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    /// Where messages wait.
    pub store: Store,
    /// How they are sent.
    pub sender: Sender,
    /// Deadline of an attempt; the sender's.
    pub deadline: Duration,
    /// Pauses before the attempts.
    pub schedule: &'static [Duration],
    /// Notified when new messages are stored.
    pub stored: Arc<Notify>,
}

impl Dispatcher {
    /// Delivers until `shutdown`, then lets attempts under way finish for a while.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut incident = Incident::new("delivering webhooks");
        let abandon = CancellationToken::new();
        let mut attempts = JoinSet::new();
        while !shutdown.is_cancelled() {
            match self
                .claim(MAX_IN_FLIGHT.saturating_sub(attempts.len()))
                .await
            {
                Ok(claimed) => {
                    incident.recovered();
                    for delivery in claimed {
                        attempts.spawn(self.clone().attempt(delivery, abandon.clone()));
                    }
                }
                Err(error) => incident.failed("the database does not answer", &error),
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.stored.notified() => {}
                Some(done) = attempts.join_next() => {
                    note(done, &mut incident);
                    // Those that finished meanwhile share one claim.
                    while let Some(done) = attempts.try_join_next() {
                        note(done, &mut incident);
                    }
                }
                () = sleep(POLL_INTERVAL) => {}
            }
        }
        if timeout(DRAIN_DEADLINE, drain(&mut attempts, &mut incident))
            .await
            .is_err()
        {
            abandon.cancel();
            drain(&mut attempts, &mut incident).await;
        }
    }

    async fn claim(&self, room: usize) -> Result<Vec<ClaimedDelivery>, StoreError> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let now = Timestamp::from(SystemTime::now());
        let total = u32::try_from(room.min(MAX_CLAIM)).unwrap_or(u32::MAX);
        let limits = ClaimLimits {
            total,
            per_webhook: MAX_PER_WEBHOOK,
        };
        self.store
            .claim_due(now, now.after(self.deadline + LEASE_MARGIN), limits)
            .await
    }

    /// One attempt and its record, or the message given back when it is abandoned.
    async fn attempt(
        self,
        delivery: ClaimedDelivery,
        abandon: CancellationToken,
    ) -> Result<(), StoreError> {
        let started = Timestamp::from(SystemTime::now());
        let clock = Instant::now();
        let result = tokio::select! {
            result = self.send(&delivery, started) => result,
            () = abandon.cancelled() => return self.store.release(&delivery).await,
        };
        let attempt = Attempt {
            started,
            duration: clock.elapsed(),
            status: result.as_ref().ok().map(|answer| answer.status),
            error: fault(&result),
        };
        let finished = started.after(attempt.duration);
        let outcome = judge(
            &result,
            delivery.attempts_before,
            self.schedule,
            finished,
            rand::random(),
        );
        log(&delivery, &attempt, &outcome);
        self.store
            .record_attempt(&delivery, &attempt, &outcome)
            .await?;
        Ok(())
    }

    async fn send(&self, delivery: &ClaimedDelivery, now: Timestamp) -> Result<Answer, SendError> {
        let headers = sign::headers(&delivery.secret, &delivery.id, now, &delivery.body)
            .map_err(|error| SendError::Failed(error.to_string()))?;
        self.sender
            .post(&delivery.url, headers, delivery.body.clone())
            .await
    }
}

async fn drain(attempts: &mut JoinSet<Result<(), StoreError>>, incident: &mut Incident) {
    while let Some(done) = attempts.join_next().await {
        note(done, incident);
    }
}

/// Tells of attempts whose record failed; their leases run out and they are repeated.
fn note(done: Result<Result<(), StoreError>, tokio::task::JoinError>, incident: &mut Incident) {
    match done {
        Ok(Ok(())) => {}
        Ok(Err(error)) => incident.failed("results cannot be recorded", &error),
        Err(error) => incident.failed("an attempt broke off", &error),
    }
}

/// What an attempt that finished at `finished` means for its message (pure).
fn judge(
    result: &Result<Answer, SendError>,
    attempts_before: u32,
    schedule: &[Duration],
    finished: Timestamp,
    random: u32,
) -> Outcome {
    let (status, retry_after) = match result {
        Ok(answer) => (Some(answer.status), answer.retry_after),
        Err(_) => (None, None),
    };
    if status.is_some_and(|status| (200..300).contains(&status)) {
        return Outcome::Accepted;
    }
    let pause = next_pause(
        schedule,
        attempts_before.saturating_add(1),
        retry_after,
        random,
    );
    if status == Some(GONE) {
        return Outcome::Gone {
            reason: "the receiver answered 410 Gone".to_owned(),
            retry_at: finished.after(pause.unwrap_or_default()),
        };
    }
    match pause {
        Some(pause) => Outcome::Retry {
            at: finished.after(pause),
        },
        None => Outcome::Exhausted,
    }
}

/// What went wrong, in words.
fn fault(result: &Result<Answer, SendError>) -> Option<String> {
    match result {
        Ok(answer) => match answer.status {
            200..300 => None,
            300..400 => Some(format!(
                "answered {}; redirects are not followed",
                answer.status
            )),
            status => Some(format!("answered {status}")),
        },
        Err(error) => Some(error.to_string()),
    }
}

/// Receivers fail all the time and are retried; only what ends the retries is worth a warning.
fn log(delivery: &ClaimedDelivery, attempt: &Attempt, outcome: &Outcome) {
    let (id, webhook) = (&delivery.id, &delivery.webhook);
    let number = delivery.attempts_before.saturating_add(1);
    let fault = attempt.error.as_deref().unwrap_or_default();
    match outcome {
        Outcome::Accepted => {
            let millis = attempt.duration.as_millis();
            tracing::debug!(%id, %webhook, number, millis, "delivered");
        }
        Outcome::Retry { at } => {
            tracing::debug!(%id, %webhook, number, fault, %at, "not delivered yet")
        }
        Outcome::Exhausted => {
            tracing::warn!(%id, %webhook, number, fault, "given up after the last attempt")
        }
        Outcome::Gone { reason, .. } => tracing::warn!(%webhook, reason, "webhook switched off"),
    }
}

#[cfg(test)]
#[path = "deliver_tests.rs"]
mod tests;

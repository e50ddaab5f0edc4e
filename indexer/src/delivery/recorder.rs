//! The task that records what became of attempts, in batches: results that come in while one is written make the next.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use service_kit::OutageLog;
use sluice_store::{
    EndpointState, Finished, MessageId, Outcome, Store, StoreError, Ticket, Timestamp,
};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, mpsc},
    time::{Instant, timeout_at},
};

use super::{
    breaker::{self, Observation},
    capacity::MAX_PER_WEBHOOK,
    limiter::Gates,
};
use crate::metrics::Metrics;

/// Results recorded in one transaction.
const MAX_RECORDED: usize = 512;

/// How long results may wait for others to be recorded with. If the process is killed meanwhile, the messages are
/// delivered once more, so not long.
const LONGEST_BURST: Duration = Duration::from_millis(20);

/// A burst is over when no result came for so long.
const QUIET: Duration = Duration::from_millis(5);

/// What became of a claimed message.
pub(super) enum Done {
    /// An attempt was made.
    Attempted(Box<Finished>, Observation),
    /// It was not, and the message is to be given back.
    Abandoned(Ticket),
}

impl Done {
    /// Whether the next message of its lane waits for this to be recorded.
    fn holds_back(&self) -> bool {
        match self {
            Self::Attempted(finished, _) => finished.ticket.in_order,
            Self::Abandoned(ticket) => ticket.in_order,
        }
    }
}

/// A result on its way to the recorder. The permit returns when it is recorded.
pub(super) type Report = (Done, OwnedSemaphorePermit);

/// The task that records.
pub(super) struct Recorder {
    /// Whether messages are due that are not claimed because others are not recorded yet.
    pub(super) backlog: Arc<AtomicBool>,
    pub(super) gates: Gates,
    pub(super) store: Store,
    pub(super) metrics: Metrics,
    pub(super) outage: OutageLog,
    /// Notified when places are free again.
    pub(super) recorded: Arc<Notify>,
}

impl Recorder {
    /// Records until the last attempt is over.
    pub(super) async fn run(mut self, mut results: mpsc::Receiver<Report>) {
        let mut batch = Vec::new();
        while results.recv_many(&mut batch, MAX_RECORDED).await > 0 {
            self.gather(&mut results, &mut batch).await;
            let (done, places): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
            match self.record(done).await {
                Ok(()) => self.outage.recovered(),
                Err(error) => self.outage.failed("the database does not answer", &error),
            }
            drop(places);
            self.recorded.notify_one();
        }
    }

    /// Lets a burst end before it is recorded: the processor is needed for what is still to be sent, and many results
    /// in one transaction cost less than few.
    async fn gather(&self, results: &mut mpsc::Receiver<Report>, batch: &mut Vec<Report>) {
        let end = Instant::now() + LONGEST_BURST;
        let mut seen = 0;
        loop {
            let others_wait = batch.iter().skip(seen).any(|(done, _)| done.holds_back());
            seen = batch.len();
            let hurry = others_wait || self.backlog.load(Ordering::Relaxed);
            if hurry || seen >= MAX_RECORDED {
                return;
            }
            let quiet = end.min(Instant::now() + QUIET);
            let more = results.recv_many(batch, MAX_RECORDED - seen);
            if !matches!(timeout_at(quiet, more).await, Ok(1..)) {
                return;
            }
        }
    }

    async fn record(&self, done: Vec<Done>) -> Result<(), StoreError> {
        let (mut finished, mut released) = (Vec::new(), Vec::new());
        let mut observed: HashMap<MessageId, (Observation, u32)> = HashMap::new();
        for done in done {
            match done {
                Done::Abandoned(ticket) => released.push(ticket),
                Done::Attempted(each, observation) => {
                    observed.insert(each.ticket.id.clone(), (observation, rand::random()));
                    finished.push(*each);
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
        let (webhook, trips) = (&finished.ticket.webhook, next.trips);
        tracing::info!(%webhook, from = state.breaker.name(), to = next.breaker.name(), trips, "breaker");
    }
    next
}

//! Metrics of the indexer, in the text format of Prometheus.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use service_kit::open_metrics;
use sluice_geyser::{ServerMetrics, Standing};
use sluice_store::{Commitment, Outcome, QueueStats, StoreError, Timestamp};

/// Bounds of the latency buckets: from a tenth of a millisecond to a minute and a half.
const FIRST_BUCKET: f64 = 0.0001;
const BUCKET_FACTOR: f64 = 2.5;
const BUCKETS: u16 = 16;

/// A name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Label {
    name: &'static str,
}

/// The kinds of failures of the database.
const STORE_FAILURES: [&str; 5] = ["full", "noAnswer", "conflict", "notLeader", "other"];

/// A stage on the way from the stream to the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From the update that let messages be emitted to their being on disk.
    Stored,
    /// From the same update to the beginning of the first attempt.
    Pending,
    /// From the beginning of an attempt to its end.
    Attempted,
    /// End to end: from the same update to the end of the attempt that was accepted, with the pauses between attempts.
    Delivered,
}

impl Stage {
    const fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Pending => "pending",
            Self::Attempted => "attempted",
            Self::Delivered => "delivered",
        }
    }
}

/// Everything that is counted. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    slots: Family<Label, Gauge>,
    updates: Counter,
    messages: Family<Label, Counter>,
    sessions: Family<Label, Counter>,
    gaps: Counter,
    truncated_logs: Counter,
    forgotten_accounts: Counter,
    attempts: Family<Label, Counter>,
    latency: Family<Label, Histogram>,
    store_failures: Family<Label, Counter>,
    leader: Gauge,
    queue: Family<Label, Gauge>,
    oldest: Gauge,
    breakers: Gauge,
    stream_age: Gauge<f64, AtomicU64>,
    servers: ServerMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let store_failures = Family::<Label, Counter>::default();
        // From the start: an increase is seen against what was there before.
        for name in STORE_FAILURES {
            drop(store_failures.get_or_create(&Label { name }));
        }
        Self {
            slots: Family::default(),
            updates: Counter::default(),
            messages: Family::default(),
            sessions: Family::default(),
            gaps: Counter::default(),
            truncated_logs: Counter::default(),
            forgotten_accounts: Counter::default(),
            attempts: Family::default(),
            latency: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(FIRST_BUCKET, BUCKET_FACTOR, BUCKETS))
            }),
            store_failures,
            leader: Gauge::default(),
            queue: Family::default(),
            oldest: Gauge::default(),
            breakers: Gauge::default(),
            stream_age: Gauge::default(),
            servers: ServerMetrics::default(),
        }
    }
}

impl Metrics {
    /// An update of the stream arrived.
    pub fn update(&self) {
        self.updates.inc();
    }

    /// The stream has shown this slot.
    pub fn slot_seen(&self, slot: u64) {
        self.set_slot("seen", slot);
    }

    /// It is so long since the stream has shown a slot.
    pub fn stream_age(&self, age: Duration) {
        self.stream_age.set(age.as_secs_f64());
    }

    /// Everything up to this slot is stored.
    pub fn checkpoint(&self, commitment: Commitment, slot: u64) {
        self.set_slot(commitment.name(), slot);
    }

    /// Messages were stored.
    pub fn stored(&self, commitment: Commitment, count: u64) {
        let name = commitment.name();
        self.messages.get_or_create(&Label { name }).inc_by(count);
    }

    /// A session with the stream ended for this reason.
    pub fn session_ended(&self, name: &'static str) {
        self.sessions.get_or_create(&Label { name }).inc();
    }

    /// A gap of this many slots was reported.
    pub fn gap(&self, slots: u64) {
        self.gaps.inc_by(slots);
    }

    /// A transaction came whose logs the validator cut.
    pub fn logs_truncated(&self) {
        self.truncated_logs.inc();
    }

    /// So many accounts of watched programs were forgotten, because there were too many.
    pub fn known_accounts_forgotten(&self, count: u64) {
        self.forgotten_accounts.inc_by(count);
    }

    /// An attempt was recorded.
    pub fn recorded(&self, outcome: &Outcome) {
        let name = match outcome {
            Outcome::Delivered => "delivered",
            Outcome::Retry { .. } => "retry",
            Outcome::Early { .. } => "early",
            Outcome::Failed => "failed",
            Outcome::Gone { .. } => "gone",
        };
        self.attempts.get_or_create(&Label { name }).inc();
    }

    /// A stage took this long.
    pub fn took(&self, stage: Stage, time: Duration) {
        let name = stage.name();
        let histogram = self.latency.get_or_create(&Label { name });
        histogram.observe(time.as_secs_f64());
    }

    /// The database did not do what was asked.
    pub fn store_failed(&self, error: &StoreError) {
        let [full, no_answer, conflict, not_leader, other] = STORE_FAILURES;
        let name = match error {
            StoreError::Full(_) => full,
            StoreError::NoAnswer { .. } => no_answer,
            StoreError::Conflict(_) => conflict,
            StoreError::NotLeader => not_leader,
            _ => other,
        };
        self.store_failures.get_or_create(&Label { name }).inc();
    }

    /// Whether this process is the leader.
    pub fn leader(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// The queue at `now`.
    pub fn queue(&self, stats: &QueueStats, now: Timestamp) {
        for (name, count) in [
            ("pending", stats.pending),
            ("leased", stats.leased),
            ("failed", stats.failed),
            ("kept", stats.kept),
            ("bytes", stats.bytes),
        ] {
            self.queue
                .get_or_create(&Label { name })
                .set(as_gauge(count));
        }
        let oldest = stats.oldest_pending.map_or(0, |oldest| {
            now.unix_seconds().saturating_sub(oldest.unix_seconds())
        });
        self.oldest.set(oldest.max(0));
        self.breakers.set(as_gauge(stats.breakers_open));
    }

    /// How the servers of the stream stand.
    pub fn servers(&self, standings: &[Standing]) {
        self.servers.show(standings);
    }

    /// Everything, in the text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut registry = Registry::with_prefix("sluice_indexer");
        let r = &mut registry;
        self.register_stream(r);
        r.register(
            "delivery_attempts",
            "Delivery attempts, by outcome",
            self.attempts.clone(),
        );
        r.register_with_unit(
            "stage_latency",
            "Time that a stage between the stream and the endpoint took",
            Unit::Seconds,
            self.latency.clone(),
        );
        r.register(
            "store_failures",
            "Failures of the database while the indexer worked, by kind; full is a full disk",
            self.store_failures.clone(),
        );
        r.register(
            "leader",
            "Whether this process is the leader, which ingests the chain",
            self.leader.clone(),
        );
        r.register(
            "queue",
            "Deliveries by state, messages kept, and their bytes",
            self.queue.clone(),
        );
        r.register_with_unit(
            "queue_oldest_age",
            "Age of the oldest pending delivery",
            Unit::Seconds,
            self.oldest.clone(),
        );
        r.register(
            "breakers_not_closed",
            "Webhooks whose circuit breaker is open or half open",
            self.breakers.clone(),
        );
        self.servers.register(r);
        open_metrics::text(&registry)
    }

    fn register_stream(&self, r: &mut Registry) {
        r.register(
            "slot",
            "Newest slot seen, and the checkpoint of each commitment",
            self.slots.clone(),
        );
        r.register_with_unit(
            "stream_age",
            "Time since the stream has shown a slot; 0 until it has",
            Unit::Seconds,
            self.stream_age.clone(),
        );
        r.register(
            "stream_updates",
            "Updates of the stream",
            self.updates.clone(),
        );
        r.register(
            "messages_stored",
            "Messages stored, by commitment",
            self.messages.clone(),
        );
        r.register(
            "stream_sessions_ended",
            "Ended sessions with the stream, by reason",
            self.sessions.clone(),
        );
        r.register(
            "gap_slots",
            "Slots in gaps: not read, and not replayed by any server",
            self.gaps.clone(),
        );
        r.register(
            "transactions_with_truncated_logs",
            "Transactions whose logs the validator cut: logged program events may be missing",
            self.truncated_logs.clone(),
        );
        r.register(
            "known_accounts_forgotten",
            "Accounts of watched programs forgotten because there were too many: their closes are not noticed",
            self.forgotten_accounts.clone(),
        );
    }

    fn set_slot(&self, name: &'static str, slot: u64) {
        self.slots
            .get_or_create(&Label { name })
            .set(as_gauge(slot));
    }
}

fn as_gauge(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use sluice_testkit::watched_metrics;

    use super::*;

    #[test]
    fn what_is_counted_is_in_the_text() {
        let metrics = Metrics::default();
        metrics.slot_seen(9);
        metrics.checkpoint(Commitment::Confirmed, 7);
        metrics.clone().recorded(&Outcome::Delivered);
        metrics.took(Stage::Stored, Duration::from_millis(3));
        metrics.took(Stage::Delivered, Duration::from_millis(9));
        metrics.stream_age(Duration::from_millis(2500));
        metrics.known_accounts_forgotten(12);
        metrics.store_failed(&StoreError::Full("no room".into()));
        let stats = QueueStats {
            pending: 4,
            oldest_pending: Some(Timestamp::from_unix_seconds(10)),
            ..QueueStats::default()
        };
        metrics.queue(&stats, Timestamp::from_unix_seconds(70));
        metrics.servers(&[standing()]);
        let text = metrics.text();
        for line in [
            "sluice_indexer_stream_server_connected{server=\"a:1\"} 1",
            "sluice_indexer_stream_server_slot{server=\"a:1\"} 9",
            "sluice_indexer_stream_server_slots_taken_total{server=\"a:1\"} 3",
            "sluice_indexer_stream_server_slots_followed_total{server=\"a:1\"} 2",
            "sluice_indexer_stream_server_behind_seconds_total{server=\"a:1\"} 0.5",
            "sluice_indexer_stream_server_contradictions_total{server=\"a:1\"} 1",
            "sluice_indexer_slot{name=\"seen\"} 9",
            "sluice_indexer_known_accounts_forgotten_total 12",
            "sluice_indexer_store_failures_total{name=\"full\"} 1",
            "sluice_indexer_slot{name=\"confirmed\"} 7",
            "sluice_indexer_delivery_attempts_total{name=\"delivered\"} 1",
            "sluice_indexer_stage_latency_seconds_count{name=\"stored\"} 1",
            "sluice_indexer_stage_latency_seconds_count{name=\"delivered\"} 1",
            "sluice_indexer_stream_age_seconds 2.5",
            "sluice_indexer_queue{name=\"pending\"} 4",
            "sluice_indexer_queue_oldest_age_seconds 60",
            "# EOF",
        ] {
            assert!(text.lines().any(|each| each == line), "{line}\n{text}");
        }
    }

    #[test]
    fn the_first_failure_of_the_database_is_an_increase() {
        let text = Metrics::default().text();
        let before = "sluice_indexer_store_failures_total{name=\"full\"} 0";
        assert!(text.lines().any(|line| line == before), "{text}");
    }

    #[test]
    fn what_alerts_and_the_dashboard_read_is_exported() {
        let metrics = Metrics::default();
        metrics.slot_seen(9);
        metrics.stored(Commitment::Confirmed, 1);
        metrics.session_ended("closed");
        metrics.store_failed(&StoreError::NotLeader);
        metrics.recorded(&Outcome::Delivered);
        metrics.took(Stage::Pending, Duration::from_millis(3));
        metrics.queue(&QueueStats::default(), Timestamp::from_unix_seconds(70));
        metrics.servers(&[standing()]);
        watched_metrics::assert_exported("sluice_indexer_", &metrics.text());
    }

    fn standing() -> Standing {
        Standing {
            server: "a:1".to_owned(),
            is_connected: true,
            slot: 9,
            taken: 3,
            followed: 2,
            behind: Duration::from_millis(500),
            contradictions: 1,
        }
    }
}

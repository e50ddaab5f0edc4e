//! Server metrics: how the servers of the stream stand against each other, for the text that Prometheus reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::servers::Standing;

/// A server of the stream. There are as many as the configuration names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabel {
    server: String,
}

/// The standings of the servers as metrics. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct ServerMetrics {
    connected: Family<ServerLabel, Gauge>,
    slot: Family<ServerLabel, Gauge>,
    taken: Family<ServerLabel, Counter>,
    followed: Family<ServerLabel, Counter>,
    behind: Family<ServerLabel, Counter<f64, AtomicU64>>,
    contradictions: Family<ServerLabel, Counter>,
}

impl ServerMetrics {
    /// Shows these standings from now on.
    pub fn show(&self, standings: &[Standing]) {
        for standing in standings {
            let label = ServerLabel {
                server: standing.server.clone(),
            };
            let connected = self.connected.get_or_create(&label);
            connected.set(standing.is_connected.into());
            let slot = self.slot.get_or_create(&label);
            slot.set(i64::try_from(standing.slot).unwrap_or(i64::MAX));
            for (family, count) in [
                (&self.taken, standing.taken),
                (&self.followed, standing.followed),
                (&self.contradictions, standing.contradictions),
            ] {
                let counter = family.get_or_create(&label);
                counter.inner().store(count, Relaxed);
            }
            let behind = self.behind.get_or_create(&label);
            let seconds = standing.behind.as_secs_f64();
            behind.inner().store(seconds.to_bits(), Relaxed);
        }
    }

    /// Adds the metrics to those of a process.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "stream_server_connected",
            "Whether a server of the stream is connected",
            self.connected.clone(),
        );
        registry.register(
            "stream_server_slot",
            "Newest slot of which a server has delivered the block",
            self.slot.clone(),
        );
        registry.register(
            "stream_server_slots_taken",
            "Slots that were taken from a server, which completed them first",
            self.taken.clone(),
        );
        registry.register(
            "stream_server_slots_followed",
            "Slots that a server completed after another one",
            self.followed.clone(),
        );
        registry.register_with_unit(
            "stream_server_behind",
            "Time by which a server completed them later, all together",
            Unit::Seconds,
            self.behind.clone(),
        );
        registry.register(
            "stream_server_contradictions",
            "Finalized slots of which a server has finalized another block",
            self.contradictions.clone(),
        );
    }
}

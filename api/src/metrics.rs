//! Metrics of the API, in the text format of Prometheus, and the route that shows them.

mod learned_units;
mod route;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
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
use sluice_chain_types::Slot;
use sluice_market::{Ladder, Market, NotReady, ServerMetrics, Status};
use sluice_transaction::compute_units::Learned;

use self::learned_units::LearnedUnits;
pub use self::route::Route;
use crate::{client::PeerIsHere, error::ApiError, rate_limit::Opened};

/// Bounds of the buckets of durations: from a hundredth of a millisecond, in which a quote is answered, to ten seconds.
const FIRST_BUCKET: f64 = 0.000_01;
const BUCKET_FACTOR: f64 = 2.5;
const BUCKETS: u16 = 16;

/// Classes of HTTP statuses, by their first digit.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// A route and what became of its requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabel {
    route: &'static str,
    status: &'static str,
}

/// An RPC method and what became of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabel {
    method: &'static str,
    outcome: &'static str,
}

/// A rung of the ladder of commitments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RungLabel {
    commitment: &'static str,
}

/// Why a client was turned away.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    name: &'static str,
}

/// What became of a call to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The node answered.
    Answered,
    /// Not before the deadline.
    Timeout,
    /// It refused, or could not be reached.
    Failed,
}

/// What is counted, without the market, which is asked when the text is made. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    requests: Family<RouteLabel, Histogram>,
    /// The same histograms by route and class: a request looks for none.
    by_route: Vec<[Histogram; CLASSES.len()]>,
    calls: Family<CallLabel, Counter>,
    refusals: Family<Label, Counter>,
    connections: Gauge,
    streams: Gauge,
    followed: Gauge,
    units: LearnedUnits,
    market: MarketGauges,
    servers: ServerMetrics,
}

#[derive(Debug, Default)]
struct MarketGauges {
    ready: Gauge,
    slot: Gauge,
    lag: Gauge,
    pools: Gauge,
    ladder: Family<RungLabel, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let requests = Family::<RouteLabel, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(FIRST_BUCKET, BUCKET_FACTOR, BUCKETS))
        });
        let of = |route: Route| {
            CLASSES.map(|status| {
                let route = route.name();
                requests.get_or_create_owned(&RouteLabel { route, status })
            })
        };
        let by_route = Route::ALL.map(of).into();
        Self(Arc::new(Parts {
            requests,
            by_route,
            calls: Family::default(),
            refusals: Family::default(),
            connections: Gauge::default(),
            streams: Gauge::default(),
            followed: Gauge::default(),
            units: LearnedUnits::default(),
            market: MarketGauges::default(),
            servers: ServerMetrics::default(),
        }))
    }
}

impl Metrics {
    /// A request of this route was answered with this status after this time.
    pub fn answered(&self, route: Route, status: StatusCode, time: Duration) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        let classes = self.0.by_route.get(route as usize);
        if let Some(histogram) = classes.and_then(|classes| classes.get(class)) {
            histogram.observe(time.as_secs_f64());
        }
    }

    /// A call to the node ended.
    pub fn called(&self, method: &'static str, outcome: CallOutcome) {
        let outcome = match outcome {
            CallOutcome::Answered => "answered",
            CallOutcome::Timeout => "timeout",
            CallOutcome::Failed => "failed",
        };
        let label = CallLabel { method, outcome };
        self.0.calls.get_or_create(&label).inc();
    }

    /// A client was turned away: a request by its limit of this name, or a connection.
    pub fn refused(&self, name: &'static str) {
        self.0.refusals.get_or_create(&Label { name }).inc();
    }

    /// So many of these are open.
    pub fn opened(&self, what: Opened, open: usize) {
        let gauge = match what {
            Opened::Connections => &self.0.connections,
            Opened::Streams => &self.0.streams,
        };
        gauge.set(i64::try_from(open).unwrap_or(i64::MAX));
    }

    /// So many transactions are followed.
    pub fn followed(&self, transactions: usize) {
        let transactions = i64::try_from(transactions).unwrap_or(i64::MAX);
        self.0.followed.set(transactions);
    }

    /// So much is learned of the exchange's compute units.
    pub fn learned_units(&self, learned: Learned) {
        self.0.units.show(learned);
    }

    /// A swap of the chain used more compute units than a limit of the moment before would have allowed.
    pub fn short_of_units(&self) {
        self.0.units.short.inc();
    }

    /// Everything, in the text format, with the market as it is now.
    #[must_use]
    pub fn text(&self, market: &Market) -> String {
        let parts = &*self.0;
        parts.market.show(&market.status());
        parts.market.show_ladder(&market.ladder());
        parts.servers.show(&market.standings());
        let mut registry = Registry::with_prefix("sluice_api");
        let r = &mut registry;
        r.register_with_unit(
            "request_duration",
            "Time from a request's head to the head of its answer, by route and class of status",
            Unit::Seconds,
            parts.requests.clone(),
        );
        r.register(
            "rpc_calls",
            "Calls to the RPC node, by method and outcome",
            parts.calls.clone(),
        );
        r.register(
            "refusals",
            "Requests and connections that were refused, by the limit that was reached",
            parts.refusals.clone(),
        );
        r.register(
            "connections",
            "Open connections of clients",
            parts.connections.clone(),
        );
        r.register("streams", "Open streams of clients", parts.streams.clone());
        r.register(
            "followed_transactions",
            "Transactions that were sent and are followed, or ended lately",
            parts.followed.clone(),
        );
        parts.units.register(r);
        parts.market.register(r);
        parts.servers.register(r);
        open_metrics::text(&registry)
    }
}

impl MarketGauges {
    fn show(&self, status: &Status) {
        let number = |slot: u64| i64::try_from(slot).unwrap_or(i64::MAX);
        let (slot, lag) = match status {
            Status::Ready { slot, pools, .. } => {
                let pools = i64::try_from(*pools).unwrap_or(i64::MAX);
                self.pools.set(pools);
                (Some(*slot), Some(0))
            }
            Status::NotReady(NotReady { slot, lag, .. }) => (*slot, *lag),
        };
        self.ready
            .set(matches!(status, Status::Ready { .. }).into());
        self.slot.set(number(slot.map_or(0, Slot::get)));
        self.lag.set(number(lag.unwrap_or(0)));
    }

    fn show_ladder(&self, ladder: &Ladder) {
        for (commitment, slot) in [
            ("node", ladder.node),
            ("reported", ladder.reported),
            ("processed", ladder.processed),
            ("confirmed", ladder.confirmed),
            ("finalized", ladder.finalized),
        ] {
            let gauge = self.ladder.get_or_create(&RungLabel { commitment });
            gauge.set(i64::try_from(slot.unwrap_or(0)).unwrap_or(i64::MAX));
        }
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(
            "chain_slot",
            "Newest slot that the node is in, that the stream has reported, and of each commitment; 0 for none",
            self.ladder.clone(),
        );
        registry.register(
            "market_ready",
            "Whether quotes can be made",
            self.ready.clone(),
        );
        registry.register(
            "market_slot",
            "Slot that the market is true for; 0 for none",
            self.slot.clone(),
        );
        registry.register(
            "market_lag_slots",
            "Slots that the stream has reported beyond it while quotes cannot be made",
            self.lag.clone(),
        );
        registry.register(
            "market_pools",
            "Pools that could be quoted when the market was last ready",
            self.pools.clone(),
        );
    }
}

/// The metrics as an answer.
pub fn answer(metrics: &Metrics, market: &Market) -> Response {
    let media_type = [(CONTENT_TYPE, open_metrics::MEDIA_TYPE)];
    (media_type, metrics.text(market)).into_response()
}

/// The route of the metrics. They name the stream's servers, which are nobody's matter but the operator's: only
/// requests from this machine are answered, unless `to_all`.
pub fn routes(metrics: Metrics, market: Market, to_all: bool) -> Router {
    let serve = async move |State((metrics, market)): State<(Metrics, Market)>,
                            PeerIsHere(is_here): PeerIsHere|
                -> Response {
        if !to_all && !is_here {
            return ApiError::NoRoute.into_response();
        }
        answer(&metrics, &market)
    };
    Router::new()
        .route("/metrics", get(serve))
        .with_state((metrics, market))
}

#[cfg(test)]
mod tests {
    use cpmm::FixedAmount;
    use sluice_market::Standing;
    use sluice_testkit::watched_metrics;
    use sluice_transaction::{
        compute_table::TokenKind,
        compute_units::{LearnedShape, Ratio},
    };

    use super::*;

    #[test]
    fn what_is_counted_is_in_the_text() {
        let metrics = Metrics::default();
        let millisecond = Duration::from_millis(1);
        metrics.answered(Route::Quote, StatusCode::OK, millisecond);
        metrics
            .clone()
            .answered(Route::Quote, StatusCode::NOT_FOUND, millisecond);
        metrics.called("getLatestBlockhash", CallOutcome::Timeout);
        metrics.refused("requests");
        metrics.opened(Opened::Connections, 3);
        metrics.opened(Opened::Streams, 2);
        metrics.followed(4);
        let shape = |input, ratio, samples| LearnedShape {
            fixed: FixedAmount::Out,
            input,
            output: TokenKind::Spl,
            extensions: 3,
            ratio: Ratio(ratio),
            samples,
        };
        metrics.learned_units(Learned {
            deployment_slot: None,
            start: Ratio::COLD_START,
            overall: (Ratio(1_250), 7),
            shapes: vec![
                shape(TokenKind::Spl, 1_300, 2),
                shape(TokenKind::Spl, 1_100, 4),
                shape(TokenKind::Token2022WithFee, 900, 1),
            ],
        });
        metrics.short_of_units();
        let text = metrics.text(&Market::default());
        for line in [
            "sluice_api_request_duration_seconds_count{route=\"/v1/quote\",status=\"2xx\"} 1",
            "sluice_api_request_duration_seconds_count{route=\"/v1/quote\",status=\"4xx\"} 1",
            "sluice_api_request_duration_seconds_count{route=\"other\",status=\"4xx\"} 0",
            "sluice_api_rpc_calls_total{method=\"getLatestBlockhash\",outcome=\"timeout\"} 1",
            "sluice_api_refusals_total{name=\"requests\"} 1",
            "sluice_api_connections 3",
            "sluice_api_streams 2",
            "sluice_api_followed_transactions 4",
            "sluice_api_learned_units_ratio 1.25",
            "sluice_api_learned_units_samples 7",
            "sluice_api_learned_units_shape_ratio{fixed=\"out\",input=\"spl\",output=\"spl\"} 1.3",
            "sluice_api_learned_units_shape_samples{fixed=\"out\",input=\"spl\",output=\"spl\"} 6",
            "sluice_api_learned_units_shape_ratio{fixed=\"out\",input=\"token2022WithFee\",output=\"spl\"} 0.9",
            "sluice_api_learned_units_short_total 1",
            "sluice_api_market_ready 0",
            "sluice_api_chain_slot{commitment=\"finalized\"} 0",
            "sluice_api_market_slot 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|each| each == line), "{line}\n{text}");
        }
    }
    #[test]
    fn what_alerts_and_the_dashboard_read_is_exported() {
        let metrics = Metrics::default();
        metrics.answered(Route::Quote, StatusCode::OK, Duration::from_millis(1));
        metrics.called("getLatestBlockhash", CallOutcome::Answered);
        metrics.refused("requests");
        metrics.0.servers.show(&[Standing {
            server: "a:1".to_owned(),
            is_connected: true,
            slot: 9,
            taken: 3,
            followed: 2,
            behind: Duration::from_millis(500),
            contradictions: 1,
        }]);
        watched_metrics::assert_exported("sluice_api_", &metrics.text(&Market::default()));
    }
}

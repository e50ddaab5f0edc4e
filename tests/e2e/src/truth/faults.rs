//! Faults of the links: connections cut at random, and bytes held back as by a stream that lags.

use std::{ops::Range, sync::Arc, time::Duration};

use rand::{Rng, SeedableRng, rngs::StdRng};
use sluice_testkit::network_link::NetworkLink;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{Plan, services::Services};

/// Time between two faults of one link, milliseconds.
const BETWEEN: Range<u64> = 2_000..6_000;

/// How long a link holds its bytes back, milliseconds.
const HELD: Range<u64> = 500..4_000;

/// One fault in so many holds bytes back; the others cut.
const HOLDS: u32 = 4;

/// How many faults there were on both links.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) cuts: u32,
    pub(super) holds: u32,
}

impl Faults {
    /// Makes faults on both links, each in its own time, until `stop`; then both are whole. The indexer's is left alone where
    /// the plan says so.
    pub(super) fn spawn(
        services: &Services,
        plan: Plan,
        stop: CancellationToken,
    ) -> JoinHandle<Self> {
        let links = [&services.api_link, &services.indexer_link].map(Arc::clone);
        tokio::spawn(async move {
            let [api, indexer] = links;
            let of = |link: Arc<NetworkLink>, seed| fail(link, seed, stop.clone());
            if plan.edits_per_second.is_some() {
                return of(api, plan.seed).await;
            }
            let indexer = of(indexer, plan.seed.wrapping_add(1));
            let (api, indexer) = tokio::join!(of(api, plan.seed), indexer);
            Self {
                cuts: api.cuts + indexer.cuts,
                holds: api.holds + indexer.holds,
            }
        })
    }
}

async fn fail(link: Arc<NetworkLink>, seed: u64, stop: CancellationToken) -> Faults {
    let mut random = StdRng::seed_from_u64(seed);
    let mut faults = Faults::default();
    loop {
        let pause = Duration::from_millis(random.random_range(BETWEEN));
        tokio::select! {
            () = stop.cancelled() => return faults,
            () = sleep(pause) => {}
        }
        if random.random_ratio(1, HOLDS) {
            faults.holds += 1;
            link.freeze(true);
            sleep(Duration::from_millis(random.random_range(HELD))).await;
            link.freeze(false);
        } else {
            faults.cuts += 1;
            link.cut();
        }
    }
}

//! Faults at random: connections cut, bytes held back as by a slow network, and the validator stopped, by which its plugin
//! lags.

use std::{ops::Range, sync::Arc, time::Duration};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use sluice_localnet::process::OwnedProcess;
use sluice_testkit::network_link::NetworkLink;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{Plan, services::Services};

/// Time between two faults of one link or of the validator, milliseconds.
const BETWEEN: Range<u64> = 2_000..6_000;

/// How long a link holds its bytes back, milliseconds.
const HELD: Range<u64> = 500..4_000;

/// One fault in so many holds bytes back; the others cut.
const HOLDS: u32 = 4;

/// How long the validator is stopped, milliseconds: some slots, and less than anybody waits for an answer of it.
const STOPPED: Range<u64> = 500..1_500;

/// How many faults there were, on both links and of the validator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) cuts: u32,
    pub(super) holds: u32,
    pub(super) stops: u32,
}

impl Faults {
    /// Makes faults on both links and of the validator, each in its own time, until `stop`; then all are whole. The indexer's
    /// link is left alone where the plan says so, and the validator with it.
    pub(super) fn spawn(
        services: &Services,
        validator: &OwnedProcess,
        plan: Plan,
        stop: CancellationToken,
    ) -> JoinHandle<Self> {
        let links = [&services.api_link, &services.indexer_link].map(Arc::clone);
        let validator = Pid::from_raw(validator.id());
        tokio::spawn(async move {
            let [api, indexer] = links;
            let of = |link: Arc<NetworkLink>, seed| fail(link, seed, stop.clone());
            if plan.edits_per_second.is_some() {
                return of(api, plan.seed).await;
            }
            let indexer = of(indexer, plan.seed.wrapping_add(1));
            let stops = stop_at_times(validator, plan.seed.wrapping_add(2), stop.clone());
            let (api, indexer, stops) = tokio::join!(of(api, plan.seed), indexer, stops);
            Self {
                cuts: api.cuts + indexer.cuts,
                holds: api.holds + indexer.holds,
                stops,
            }
        })
    }
}

/// The validator's processes, stopped until this is dropped: also where the run ends before its time.
struct StoppedGroup(Pid);

impl StoppedGroup {
    fn stop(group: Pid) -> nix::Result<Self> {
        killpg(group, Signal::SIGSTOP)?;
        Ok(Self(group))
    }
}

impl Drop for StoppedGroup {
    fn drop(&mut self) {
        // It fails where the group is gone alone, and then nothing is stopped.
        let _ = killpg(self.0, Signal::SIGCONT);
    }
}

/// Returns how often the validator was stopped until `stop`. One that is gone is not: the run finds that out by itself.
async fn stop_at_times(validator: Pid, seed: u64, stop: CancellationToken) -> u32 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut stops = 0;
    loop {
        let pause = Duration::from_millis(random.random_range(BETWEEN));
        tokio::select! {
            () = stop.cancelled() => return stops,
            () = sleep(pause) => {}
        }
        let stopped = Duration::from_millis(random.random_range(STOPPED));
        if let Ok(group) = StoppedGroup::stop(validator) {
            stops += 1;
            sleep(stopped).await;
            drop(group);
        }
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

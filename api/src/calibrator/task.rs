//! Calibration task: feeds the calibrator from the chain, and keeps what it learned in the database.

use std::{sync::Arc, time::Duration};

use service_kit::{Backoff, CancellationToken, OutageLog};
use sluice_market::{Execution, Market};
use sluice_store::Store;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, sleep},
};

use super::Calibrator;
use crate::rpc::{Rpc, deployment_slot};

/// How often what was learned is kept: as much is learned again after a crash.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// What the calibrator learns from, and where it keeps that.
pub struct Sources {
    /// Knows the pools of the swaps.
    pub market: Market,
    /// Says in which slot the exchange was deployed.
    pub rpc: Arc<Rpc>,
    /// Keeps what was learned.
    pub store: Store,
    /// What is executed.
    pub executions: mpsc::Receiver<Execution>,
}

/// Teaches `calibrator` until `shutdown`.
pub async fn run(calibrator: Arc<Calibrator>, mut sources: Sources, shutdown: CancellationToken) {
    let mut keeping = Keeping::new(sources.store.clone());
    shutdown
        .run_until_cancelled(keeping.restore(&calibrator))
        .await;
    let mut keep_at = interval(KEEP_EVERY);
    keep_at.set_missed_tick_behavior(MissedTickBehavior::Delay);
    keep_at.reset();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            _ = keep_at.tick() => keeping.keep(&calibrator).await,
            execution = sources.executions.recv() => match execution {
                None => break,
                Some(Execution::Connected) => {
                    // It may have been deployed while nothing was seen of it.
                    let read = read_deployment(&calibrator, &sources.rpc);
                    shutdown.run_until_cancelled(read).await;
                }
                Some(Execution::Transaction { logs }) => calibrator.observe(&sources.market, &logs),
                Some(Execution::Deployed(data)) => {
                    if let Some(slot) = deployment_slot(&data) {
                        calibrator.deployed(slot);
                    }
                }
            },
        }
    }
    keeping.keep(&calibrator).await;
}

async fn read_deployment(calibrator: &Calibrator, rpc: &Rpc) {
    let mut backoff = Backoff::new();
    let mut outage = OutageLog::new("reading the exchange's deployment slot");
    loop {
        match rpc.exchange_deployment().await {
            Ok(slot) => {
                outage.recovered();
                return calibrator.deployed(slot);
            }
            Err(error) => outage.failed(error.code(), &error),
        }
        sleep(backoff.next_pause(rand::random())).await;
    }
}

/// What the database has, and how that goes.
struct Keeping {
    store: Store,
    kept: String,
    outage: OutageLog,
}

impl Keeping {
    const fn new(store: Store) -> Self {
        Self {
            store,
            kept: String::new(),
            outage: OutageLog::new("keeping learned compute units"),
        }
    }

    async fn restore(&mut self, calibrator: &Calibrator) {
        match self.store.learned_units().await {
            Ok(Some(kept)) => {
                calibrator.restore(&kept);
                self.kept = kept;
            }
            Ok(None) => {}
            Err(error) => self.outage.failed("not read", &error),
        }
    }

    async fn keep(&mut self, calibrator: &Calibrator) {
        let learned = match calibrator.kept() {
            Ok(learned) if learned != self.kept => learned,
            _ => return,
        };
        match self.store.keep_learned_units(&learned).await {
            Ok(()) => {
                self.outage.recovered();
                self.kept = learned;
            }
            Err(error) => self.outage.failed("not written", &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use service_kit::Clock;
    use sluice_transaction::Exchange;

    use super::*;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn what_was_learned_outlives_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("sluice.db"))
            .await
            .expect("opens");
        let begin = || Calibrator::new(Exchange::StandIn, Clock::system(), Metrics::default());
        let first = begin();
        // Another build: the ratio at which everything begins is no more the one of a cold start.
        first.deployed(1);
        first.deployed(2);
        let kept = first.kept().expect("JSON");
        assert_ne!(kept, begin().kept().expect("JSON"));
        Keeping::new(store.clone()).keep(&first).await;

        let next = begin();
        Keeping::new(store.clone()).restore(&next).await;
        assert_eq!(next.kept().expect("JSON"), kept);
        next.deployed(2);
        assert_eq!(next.kept().expect("JSON"), kept, "the same build");

        store.keep_learned_units("no JSON").await.expect("keeps");
        let cold = begin();
        Keeping::new(store).restore(&cold).await;
        assert_eq!(cold.kept().expect("JSON"), begin().kept().expect("JSON"));
    }
}

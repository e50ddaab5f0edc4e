//! Recoveries: has the store make due, round by round, all that waits for a retry at endpoints that accept again.
//!
//! A round is one transaction, and between two of them others write: results are recorded and deliveries leased meanwhile.

use std::time::Duration;

use service_kit::OutageLog;
use sluice_store::{Recovering, Store};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

/// Pause before a round is tried again that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// How long rounds are waited for at the end of the process. What is left keeps its time then.
const LAST_ROUNDS: Duration = Duration::from_secs(5);

/// The recoveries that are under way.
pub(super) struct Recoveries {
    store: Store,
    /// Deliveries that a round makes due.
    pub(super) most_in_round: u32,
    under_way: JoinSet<()>,
}

impl Recoveries {
    pub(super) fn new(store: Store, most_in_round: u32) -> Self {
        Self {
            store,
            most_in_round,
            under_way: JoinSet::new(),
        }
    }

    /// Goes on with these.
    pub(super) fn go_on(&mut self, recovering: Vec<Recovering>) {
        while self.under_way.try_join_next().is_some() {}
        for each in recovering {
            let pulling = pull_forward(self.store.clone(), each, self.most_in_round);
            self.under_way.spawn(pulling);
        }
    }

    /// Waits for what is under way.
    pub(super) async fn finish(mut self) {
        let last = async { while self.under_way.join_next().await.is_some() {} };
        if timeout(LAST_ROUNDS, last).await.is_err() {
            tracing::warn!("deliveries to endpoints that accept again are left to their own times");
        }
    }
}

async fn pull_forward(store: Store, mut recovering: Recovering, most: u32) {
    let mut outage = OutageLog::new("sending what waits for endpoints that accept again");
    loop {
        match store.pull_forward(&recovering, most).await {
            Ok(Some(rest)) => {
                outage.recovered();
                recovering = rest;
            }
            Ok(None) => return outage.recovered(),
            Err(error) => {
                outage.failed(error.outage(), &error);
                sleep(RETRY_PAUSE).await;
            }
        }
    }
}

//! Readings: what the database told last of the readiness, so that a probe neither waits for it nor loads it.
//!
//! A database that hangs does not answer with a fault, it does not answer at all; a probe that waited for it would say nothing
//! until its own deadline, and nothing of the reason.

use std::{convert::Infallible, time::Duration};

use sluice_store::{Readiness, Store};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// Between two readings: what a probe is told is at most so old while the database answers at once, and one statement is
/// nothing to it.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long the database may take before nothing is known of it: far longer than on the busiest machine, and shorter than
/// the lease of a leader.
const PATIENCE: Duration = Duration::from_secs(5);

/// One answer of the database.
#[derive(Debug)]
struct Reading {
    /// When it was asked.
    asked: Instant,
    told: Result<Readiness, String>,
}

/// The last of the answers.
#[derive(Clone, Debug)]
pub(super) struct Readings(watch::Receiver<Option<Reading>>);

impl Reading {
    /// What is known of the database at this moment, or why nothing is.
    fn at(&self, now: Instant) -> Result<Readiness, String> {
        let age = now.duration_since(self.asked);
        if age > PATIENCE {
            return Err(silent_for(age));
        }
        self.told.clone()
    }
}

fn silent_for(time: Duration) -> String {
    format!("the database has not answered for {} s", time.as_secs())
}

impl Readings {
    /// The readings, and the task that makes them, which never ends.
    pub(super) fn of(store: Store) -> (Self, impl Future<Output = Infallible>) {
        let (told, readings) = watch::channel(None);
        let reading = async move {
            loop {
                let asked = Instant::now();
                let readiness = store.readiness().await;
                told.send_replace(Some(Reading {
                    asked,
                    told: readiness.map_err(|error| error.to_string()),
                }));
                sleep(INTERVAL).await;
            }
        };
        (Self(readings), reading)
    }

    /// One that tells this for as long as a test takes.
    #[cfg(test)]
    pub(super) fn telling(readiness: Readiness) -> Self {
        let (_, readings) = watch::channel(Some(Reading {
            asked: Instant::now(),
            told: Ok(readiness),
        }));
        Self(readings)
    }

    /// The last one. Only the first is waited for.
    pub(super) async fn last(&self) -> Result<Readiness, String> {
        let mut readings = self.0.clone();
        let first = readings.wait_for(Option::is_some);
        let last = match timeout(PATIENCE, first).await {
            Ok(Ok(last)) => last.as_ref().map(|last| last.at(Instant::now())),
            // There is none yet, or the process is about to end.
            Ok(Err(_)) | Err(_) => None,
        };
        last.unwrap_or_else(|| Err(silent_for(PATIENCE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Readiness = Readiness {
        checkpoint: None,
        filter: None,
        pending_deliveries: 0,
        leader_is_silent: false,
    };

    #[test]
    fn an_old_reading_says_that_the_database_is_silent_whatever_it_told() {
        let asked = Instant::now();
        for told in [Ok(NOTHING), Err("full".to_owned())] {
            let reading = Reading { asked, told };
            let old = asked + PATIENCE + Duration::from_millis(2_900);
            let silent = "the database has not answered for 7 s";
            assert_eq!(reading.at(old), Err(silent.to_owned()));
            let fresh = reading.at(asked + PATIENCE);
            assert_eq!(fresh, reading.told);
        }
    }
}

//! Strikes of a run: what is killed next, suspended or asked to end, and for how long it is let be.

use std::{ops::Range, time::Duration};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::Trial;
use crate::chaos::database::Part;

/// A process this young counts as newborn: it opens the database, takes the lead and has slots replayed.
const NEWBORN: Duration = Duration::from_millis(300);

/// How long a process is suspended: shorter than the lease of a leader, after which it goes on as if nothing had been; or
/// longer, after which another one leads, and what it still writes as the leader must be refused.
const SHORT_SUSPENSION: Range<u64> = 0..3_000;
const LONG_SUSPENSION: Range<u64> = 10_000..14_000;

impl Trial {
    /// Kills something, suspends it, or asks it to end; returns how long to let the rest be.
    pub(super) async fn strike(&mut self) -> anyhow::Result<Duration> {
        // Each blow draws for itself, so that what one of them meets does not change the next ones.
        let mut rng = StdRng::seed_from_u64(self.rng.random());
        let pause = pause(&mut rng);
        let victim = rng.random_range(0..self.fleet.processes.len());
        let rest = rest(&mut rng);
        if let Some(again) = self.again.take() {
            self.kill(&[again], rest).await?;
            return Ok(pause);
        }
        match rng.random_range(0..100) {
            0..5 => self.fleet.processes[victim].stop()?,
            5..30 if self.strike_database(&mut rng)? => {}
            30..38 => {
                let all: Vec<_> = (0..self.fleet.processes.len()).collect();
                self.kill(&all, rest).await?;
            }
            38..60 => {
                self.kill(&[victim], rest).await?;
                self.again = Some(victim);
                return Ok(rest + NEWBORN.mul_f64(rng.random()));
            }
            60..70 => {
                let suspended = self.fleet.processes[victim].suspend(suspension(&mut rng))?;
                self.suspended += u32::from(suspended);
            }
            _ => self.kill(&[victim], rest).await?,
        }
        Ok(pause)
    }

    /// Kills a part of the database, if it has any that runs.
    fn strike_database(&mut self, rng: &mut StdRng) -> anyhow::Result<bool> {
        let part = self.database.kill(rng)?;
        match part {
            Some(Part::Postmaster) => self.kills.postmasters += 1,
            Some(Part::Backend) => self.kills.backends += 1,
            None => {}
        }
        Ok(part.is_some())
    }

    /// Kills those of these processes that run.
    pub(super) async fn kill(&mut self, victims: &[usize], rest: Duration) -> anyhow::Result<()> {
        for victim in victims {
            let process = &mut self.fleet.processes[*victim];
            let Some(since) = process.runs_since() else {
                continue;
            };
            let is_newborn = since.elapsed() < NEWBORN;
            if process.kill(rest).await? {
                self.kills.newborn += u32::from(is_newborn);
                self.kills.processes += u32::from(!is_newborn);
            }
        }
        Ok(())
    }
}

/// A quarter of the pauses are moments, a quarter seconds: some kills come together, and some find work well under
/// way.
fn pause(rng: &mut StdRng) -> Duration {
    let millis = match rng.random_range(0..4) {
        0 => rng.random_range(0..200),
        1 | 2 => rng.random_range(200..3_000),
        _ => rng.random_range(3_000..6_000),
    };
    Duration::from_millis(millis)
}

/// How long a process stays down. Mostly hardly at all, as under a supervisor.
fn rest(rng: &mut StdRng) -> Duration {
    let most = if rng.random_ratio(1, 5) { 3_000 } else { 200 };
    Duration::from_millis(rng.random_range(0..most))
}

/// Half of the suspensions are short.
fn suspension(rng: &mut StdRng) -> Duration {
    let millis = if rng.random() {
        SHORT_SUSPENSION
    } else {
        LONG_SUSPENSION
    };
    Duration::from_millis(rng.random_range(millis))
}

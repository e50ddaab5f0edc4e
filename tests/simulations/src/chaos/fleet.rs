//! Fleet: the processes of a run, started, resumed and looked after as by a supervisor.

use std::time::Duration;

use anyhow::Context;

use super::process::{Ended, Process};

/// How long a process that could not start, or was asked to end, stays down.
const RESTART: Duration = Duration::from_millis(100);

/// The processes, and what became of them.
#[derive(Default)]
pub struct Fleet {
    /// All of them, whether they run or not.
    pub processes: Vec<Process>,
    /// How many were asked to end, and did.
    pub stopped: u32,
    /// How many could not start.
    pub failed_starts: u32,
    /// What the last one said that could not start.
    pub why_not: String,
}

impl Fleet {
    /// Starts and resumes what is due.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn start_due(&mut self) -> anyhow::Result<()> {
        for process in &mut self.processes {
            process.start_if_due()?;
            process.resume_if_due()?;
        }
        Ok(())
    }

    /// Notes which have ended by themselves, and returns what nothing excuses.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn look(&mut self) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for process in &mut self.processes {
            match process.look(RESTART)? {
                None => {}
                Some(Ended::Asked) => self.stopped += 1,
                Some(Ended::CouldNotStart(why)) => {
                    self.failed_starts += 1;
                    self.why_not = why;
                }
                Some(Ended::Wrongly(how)) => wrong.push(how),
            }
        }
        Ok(wrong)
    }

    /// Kills them all.
    ///
    /// # Errors
    /// When one of them was panicking.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        for process in &mut self.processes {
            process.kill(Duration::ZERO).await.context("at the end")?;
        }
        Ok(())
    }
}

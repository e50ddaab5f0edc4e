//! Head start: a command of this program whose work is due later, begun beside work that leaves the network idle.
//!
//! Nothing is read of it. Who needs the work does it in view all the same, and then finds it done, or says why it cannot be.

use std::env;
use std::process::{Child, Command};

use anyhow::{Context, Result};

use crate::command::{command, show};
use crate::repo::Repo;
use crate::step::create_log;

/// Its priority, of those from -20, the highest, to 19.
const NICENESS: &str = "10";

/// A command that is under way.
pub struct HeadStart {
    child: Child,
}

impl HeadStart {
    /// Begins `task`, which gives way to what runs in view. Its output goes to the log of that name alone.
    pub fn begin(repo: &Repo, task: &str) -> Result<Self> {
        let itself = env::current_exe().context("cannot tell which program this is")?;
        let mut gives_way = command(repo, "nice");
        gives_way.args(["-n", NICENESS]).arg(itself).arg(task);
        Self::spawn(repo, task, &mut gives_way)
    }

    fn spawn(repo: &Repo, log: &str, work: &mut Command) -> Result<Self> {
        let (_, log) = create_log(repo, log)?;
        let errors = log.try_clone().context("cannot share a log")?;
        let child = work
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start `{}`", show(work)))?;
        Ok(Self { child })
    }

    /// Waits for its end. One that failed is no fault yet.
    pub fn finish(mut self) -> Result<()> {
        self.child.wait().context("cannot wait for a head start")?;
        Ok(())
    }
}

impl Drop for HeadStart {
    /// Where nothing waits for it any more, the run has failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_fails_is_left_to_whoever_needs_the_work() {
        let repo = Repo::locate().expect("the tests run in a checkout");
        let failing = HeadStart::spawn(&repo, "head-start-trial", &mut Command::new("false"));
        failing.expect("it starts").finish().expect("it has ended");
    }

    #[test]
    fn one_that_nothing_waits_for_is_ended() {
        let repo = Repo::locate().expect("the tests run in a checkout");
        let mut long = Command::new("sleep");
        let head_start = HeadStart::spawn(&repo, "head-start-trial-2", long.arg("600"));
        let id = head_start.as_ref().expect("it starts").child.id();
        drop(head_start);
        let process = std::path::PathBuf::from(format!("/proc/{id}"));
        assert!(!process.exists(), "it goes on");
    }
}

//! `fetch`: downloads what tests take from npm and PyPI, exactly as their lock files name it; afterwards they need no network.

use std::env;
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::clients::python::Python;
use crate::repo::Repo;
use crate::{clients, deployment, prove};

/// The command's name, by which a test run starts it beside itself.
const COMMAND: &str = "fetch";

/// Downloads and installs all of it.
pub fn run(repo: &Repo) -> Result<()> {
    let python = Python::find(repo)?;
    for sources in [deployment::checks(repo), prove::room(repo)] {
        python.environment(repo, &sources)?;
    }
    clients::fetch(repo, &python)
}

/// A download beside other work.
pub struct Fetching {
    child: Child,
}

impl Fetching {
    /// Begins, out of view: a compiler leaves the network idle and now and then a processor.
    pub fn begin(repo: &Repo) -> Result<Self> {
        let folder = repo.logs();
        let log = folder.join("fetch.log");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let log = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let itself = env::current_exe().context("cannot tell which program this is")?;
        let child = Command::new(itself)
            .arg(COMMAND)
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share the log")?)
            .stderr(log)
            .spawn()
            .context("cannot start the download")?;
        Ok(Self { child })
    }

    /// Waits for its end. One that failed is no fault yet: who needs what is missing fetches it again, and then says why
    /// it cannot.
    pub fn finish(mut self) -> Result<()> {
        self.child.wait().context("cannot wait for the download")?;
        Ok(())
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        // Nothing waits for it any more; what it began is begun anew, since nothing unfinished is taken for installed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

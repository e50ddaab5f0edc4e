//! `faults`: random scripts in which streams, nodes and branches fail, through the market, against a model.

use anyhow::{Result, bail};

use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;

/// Plays `runs` scripts, the first one made by `seed`.
pub fn explore(repo: &Repo, runs: u64, seed: u64) -> Result<()> {
    let words = [
        "run",
        "--quiet",
        "--package",
        "sluice-tests",
        "--bin",
        "faults",
    ];
    let mut faults = Workspace::root(repo).cargo(repo, &words);
    faults.arg("--").arg("--runs").arg(runs.to_string());
    faults.arg("--seed").arg(seed.to_string());
    let step = Step::begin(
        repo,
        "faults",
        &format!("Playing {runs} random scripts from seed {seed} on"),
        "whatever goes wrong on the way, the market must show the chain or say that it cannot",
        "a minute for 1,000",
    )?;
    let (status, _) = step.run_in_full_view(&mut faults)?;
    if !status.success() {
        bail!("the market and the model differ; the seeds are above");
    }
    step.done();
    Ok(())
}

//! `parity`: random swaps, predicted by the arithmetic and executed by the exchange's program.

use anyhow::{Result, bail};

use crate::cache::Cache;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;
use crate::{exchange, programs};

/// Compares `cases` swaps of the row that `seed` names, on the stand-in or on the program that replaces it.
pub fn compare(repo: &Repo, cache: &Cache, cases: usize, seed: u64) -> Result<()> {
    let replacement = exchange::replacement()?;
    programs::build_served(repo, cache)?;
    let words = [
        "run",
        "--quiet",
        "--package",
        "sluice-tests",
        "--bin",
        "parity",
    ];
    let mut parity = Workspace::root(repo).cargo(repo, &words);
    exchange::hand_on(replacement.as_deref(), &mut parity);
    parity.arg("--").arg("--cases").arg(cases.to_string());
    parity.arg("--seed").arg(seed.to_string());
    let step = Step::begin(
        repo,
        "parity",
        &format!("Comparing {cases} random swaps of seed {seed}"),
        "a quote must equal what the exchange pays, to the unit, or both must refuse alike",
        "a minute for 100,000",
    )?;
    let (status, _) = step.run_in_full_view(&mut parity)?;
    if !status.success() {
        bail!("the arithmetic and the exchange differ; the mismatches are above");
    }
    step.done();
    Ok(())
}

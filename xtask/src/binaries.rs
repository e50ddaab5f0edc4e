//! Builds the two programs that run on this machine: `sluice` and `sluice-localnet`.

use std::path::PathBuf;

use anyhow::Result;

use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;

/// Paths of the built programs.
pub struct Binaries {
    pub sluice: PathBuf,
    pub localnet: PathBuf,
}

/// Builds both.
pub fn build(repo: &Repo) -> Result<Binaries> {
    let step = Step::begin(
        repo,
        "binaries",
        "Building sluice and sluice-localnet",
        "the service itself, and the director that runs it beside a local chain",
        "6 minutes from nothing, seconds after an edit",
    )?;
    // The whole workspace is named so that its crates get the same features as in a test run, and are compiled once.
    let words = [
        "build",
        "--workspace",
        "--bin",
        "sluice",
        "--bin",
        "sluice-localnet",
    ];
    step.run(&mut Workspace::root(repo).cargo(repo, &words))?;
    step.done();
    let folder = repo.target().join("debug");
    Ok(Binaries {
        sluice: folder.join("sluice"),
        localnet: folder.join("sluice-localnet"),
    })
}

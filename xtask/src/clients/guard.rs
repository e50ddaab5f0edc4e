//! The guard's own client for `@solana/kit`: made from the IDL by Codama, and held to what the service builds.

use std::path::PathBuf;

use anyhow::Result;

use super::node::{self, NodeJs};
use super::typescript::{COMPILER, TEST_TIMEOUT, counts, noted_npm, script};
use crate::nextest::Counts;
use crate::repo::Repo;
use crate::step::Step;

/// Name of its packages' folder under `target/clients`.
const PACKAGES: &str = "guard";

/// Installs what makes it.
pub fn install(repo: &Repo, node: &NodeJs) -> Result<()> {
    node::install(repo, node, &folder(repo), PACKAGES)
}

/// Makes it from the IDL, and builds it.
pub fn build(repo: &Repo, node: &NodeJs) -> Result<()> {
    install(repo, node)?;
    let folder = folder(repo);
    let step = Step::begin(
        repo,
        "guard-client-build",
        "Building the guard's client",
        "it is made from the guard's IDL, and not committed",
        "10 s",
    )?;
    step.run(script(repo, &folder).arg("scripts/generate.js"))?;
    step.run(script(repo, &folder).arg(COMPILER))?;
    step.done();
    Ok(())
}

/// Holds it to the IDL and to recorded transactions of the service, and installs what is published of it.
pub fn test(repo: &Repo) -> Result<Counts> {
    let step = Step::begin(
        repo,
        "guard-client-test",
        "Testing the guard's client",
        "it must read and write what the service builds, byte for byte, and so must the package installed in a clean folder",
        "5 s",
    )?;
    let mut run = script(repo, &folder(repo));
    run.args(["--test", "--test-reporter=tap", TEST_TIMEOUT, "tests/"]);
    let lines = step.read(run.env("SLUICE_NPM", noted_npm(repo)?))?;
    step.done();
    counts(&lines)
}

/// Where its sources are.
pub(super) fn folder(repo: &Repo) -> PathBuf {
    repo.root().join("clients/guard")
}

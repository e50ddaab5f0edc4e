//! The root workspace, tested: crates, services, clients, packages, and the whole machine on a real validator.

use anyhow::Result;

use super::Tools;
use super::beside::Beside;
use super::stages::Stages;
use crate::cache::Cache;
use crate::nextest::{self, Counts, Nextest};
use crate::packages::Package;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;
use crate::{
    bench, binaries, clients, deployment, exchange, faketime, imports, lint, openapi, postgres,
    prove, release,
};

/// Packages of the system that the stages need.
pub fn packages_needed(repo: &Repo) -> Vec<Package> {
    [
        &clients::packages_needed(repo),
        &postgres::packages_needed(),
        faketime::packages_needed(),
        deployment::packages_needed(),
        release::packages_needed(),
        bench::Subject::Requests.packages_needed(),
    ]
    .concat()
}

/// Checks, builds and tests. Returns what is left to be run beside other stages.
pub fn test<'a>(
    repo: &'a Repo,
    cache: &Cache,
    tools: &'a Tools,
    stages: &mut Stages,
) -> Result<Vec<Beside<'a>>> {
    stages.side_by_side(vec![
        Beside::stage("deployment files", || deployment::check(repo, cache)),
        Beside::stage("format", || lint::formatting(repo)),
        Beside::stage("imports", || imports::check(repo)),
    ])?;
    let linted = &tools.linted;
    stages.stage("build and lint", || {
        lint::build(linted, &Workspace::root(linted))
    })?;
    stages.stage("OpenAPI document", || openapi::check(linted))?;
    stages.stage("build binaries", || binaries::build(linted).map(drop))?;
    stages.stage("set up clients", || clients::set_up(linted))?;
    stages.side_by_side(vec![
        Beside::stage("Rust client", || clients::rust::check(repo)),
        Beside::stage("Debian package", || release::check(repo)),
        Beside::tests("TypeScript client", || clients::typescript::test(repo)),
        Beside::tests("guard's client", || clients::guard::test(repo)),
    ])?;
    stages.tests("root tests", || test_root(tools))?;
    Ok(vec![
        Beside::stage("instructions of requests", || {
            bench::check(linted, bench::Subject::Requests)
        }),
        Beside::stage("inputs in the prover", || prove::test_recorded(repo)),
    ])
}

fn test_root(tools: &Tools) -> Result<Counts> {
    let repo = &tools.linted;
    let step = Step::begin(
        repo,
        "test-root",
        "Testing the root workspace, the end-to-end demo included",
        "unit tests, programs in LiteSVM, services, and the whole machine on a real validator",
        "13 minutes",
    )?;
    let mut run = tools.nextest.command(repo)?;
    Workspace::root(repo).apply(&mut run);
    run.args(["--locked", "--test-threads", &Nextest::threads()?]);
    run.env("SLUICE_VALIDATOR", &tools.validator);
    run.env("SLUICE_RECORD_INPUTS", prove::recorded_inputs(repo)?);
    exchange::hand_on(exchange::replacement()?.as_deref(), &mut run);
    tools.geyser.hand_on(&mut run);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

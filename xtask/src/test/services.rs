//! The root workspace, tested: crates, services, clients, and the whole machine on a real validator.

use anyhow::Result;

use super::beside::Beside;
use super::on_chain;
use super::stages::Stages;
use super::{Part, Tools};
use crate::cache::Cache;
use crate::nextest::{self, Counts, Nextest};
use crate::packages::Package;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;
use crate::{
    bench, binaries, clients, deployment, exchange, faketime, imports, lint, openapi, plugin,
    postgres, programs, prove, release, system_packages,
};

/// Packages of the system that all stages need, those of the run beside included.
fn packages_needed(repo: &Repo) -> Vec<Package> {
    [
        &clients::packages_needed(repo),
        &postgres::packages_needed(),
        faketime::packages_needed(),
        deployment::packages_needed(),
        release::packages_needed(),
        bench::Subject::Requests.packages_needed(),
        &on_chain::PACKAGES_NEEDED,
    ]
    .concat()
}

/// Every stage: those of this workspace here, the other parts in a run of their own beside the longest.
pub fn all(repo: &Repo, cache: &Cache, stages: &mut Stages) -> Result<()> {
    stages.stage("system packages", || {
        system_packages::require(repo, cache, &packages_needed(repo))
    })?;
    let tools = Tools::set_up(repo, cache, stages)?;
    stages.stage("format", || lint::formatting(repo))?;
    stages.stage("imports", || imports::check(repo))?;
    stages.stage("deployment files", || deployment::check(repo, cache))?;
    stages.stage("build programs", || programs::build(repo, cache))?;
    let geyser = plugin::Replacement::find(repo)?;
    stages.stage("build plugin", || plugin::build(repo))?;
    let linted = &repo.linted_as_it_is_built();
    stages.stage("build and lint", || lint::build(linted))?;
    stages.stage("OpenAPI document", || openapi::check(linted))?;
    stages.stage("build binaries", || binaries::build(linted).map(drop))?;
    stages.stage("set up clients", || clients::set_up(linted))?;
    stages.tests("TypeScript client", || clients::typescript::test(repo))?;
    stages.tests("guard's client", || clients::guard::test(repo))?;
    let beside = Beside::start(linted, &[Part::OnChain, Part::Packages])?;
    let outcome = stages.tests("root tests", || test_root(linted, &tools, &geyser));
    // What the other run found is told also where this one failed.
    let found = beside.wait(repo);
    outcome?;
    stages.tests("beside: the other parts", || found)?;
    stages.stage("instructions of requests", || {
        bench::check(linted, bench::Subject::Requests)
    })?;
    stages.stage("inputs in the prover", || prove::test_recorded(repo))
}

fn test_root(repo: &Repo, tools: &Tools, geyser: &plugin::Replacement) -> Result<Counts> {
    let step = Step::begin(
        repo,
        "test-root",
        "Testing the root workspace, the end-to-end demo included",
        "unit tests, programs in LiteSVM, services, and the whole machine on a real validator",
        "16 minutes",
    )?;
    let mut run = tools.nextest.command(repo)?;
    Workspace::root(repo).apply(&mut run);
    run.args(["--locked", "--test-threads", &Nextest::threads()?]);
    run.env("SLUICE_VALIDATOR", &tools.validator);
    run.env("SLUICE_RECORD_INPUTS", prove::recorded_inputs(repo)?);
    exchange::hand_on(exchange::replacement()?.as_deref(), &mut run);
    geyser.hand_on(&mut run);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

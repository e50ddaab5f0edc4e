//! What a validator loads, tested: the on-chain programs, the proof of the guard, an older client of it, the Geyser plugin.

use anyhow::Result;

use super::Tools;
use super::beside::Beside;
use super::stages::Stages;
use crate::nextest::{self, Counts};
use crate::output::say;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;
use crate::{bench, guard_tests, idl, lint, miri, prove, sanitizer};

/// Builds and tests. Returns what is left to be run beside other stages.
pub fn test<'a>(repo: &'a Repo, tools: &'a Tools, stages: &mut Stages) -> Result<Vec<Beside<'a>>> {
    let nextest = &tools.nextest;
    let linted = &tools.linted;
    stages.stage("lint plugin", || {
        lint::build(linted, &Workspace::plugin(linted))
    })?;
    stages.tests("plugin tests", || test_plugin(tools))?;
    stages.stage("lint programs", || {
        lint::build(linted, &Workspace::programs(linted))
    })?;
    stages.tests("program tests (native)", || test_programs(tools))?;
    if sanitizer::IS_THERE {
        stages.tests("guard's unsafe (sanitizer)", || {
            guard_tests::under_sanitizer(repo, nextest)
        })?;
    }
    if miri::is_there(repo) {
        stages.tests("guard's unsafe (miri)", || {
            guard_tests::under_miri(repo, nextest)
        })?;
    } else {
        say!("==> Miri is left out: the pinned compiler comes without it here");
    }
    stages.stage("IDL", || idl::check(repo))?;
    stages.tests("guard's reference", || {
        guard_tests::of_reference(linted, nextest)
    })?;
    stages.stage("figures of the guard", || {
        bench::check(linted, bench::Subject::Guard)
    })?;
    stages.stage("proof of the guard", || prove::check(repo))?;
    stages.tests("Anchor client tests", || test_anchor_client(tools))?;
    Ok(vec![Beside::stage("tests of the prover", || {
        prove::test(repo)
    })])
}

fn test_programs(tools: &Tools) -> Result<Counts> {
    let repo = &tools.linted;
    let step = Step::begin(
        repo,
        "test-programs",
        "Testing the on-chain programs' own logic, natively",
        "arithmetic and encodings, before anything runs on a chain",
        "20 s from nothing",
    )?;
    let mut run = tools.nextest.command(repo)?;
    Workspace::programs(repo).apply(&mut run);
    run.args(["--locked", "--no-tests=pass"]);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

fn test_anchor_client(tools: &Tools) -> Result<Counts> {
    let repo = &tools.linted;
    let step = Step::begin(
        repo,
        "test-anchor-client",
        "Testing the guard called by an older framework's client",
        "integrators' clients know the guard from its IDL alone",
        "a minute from nothing, 5 s after an edit",
    )?;
    let mut run = tools.nextest.command(repo)?;
    Workspace::anchor_client(repo).apply(&mut run);
    run.arg("--locked");
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

fn test_plugin(tools: &Tools) -> Result<Counts> {
    let repo = &tools.linted;
    let step = Step::begin(
        repo,
        "test-plugin",
        "Testing the Geyser plugin",
        "its filters, its replay and its limits, over real gRPC, and in a validator",
        "a minute from nothing",
    )?;
    let mut run = tools.nextest.command(repo)?;
    Workspace::plugin(repo).apply(&mut run);
    run.arg("--locked")
        .env("SLUICE_VALIDATOR", &tools.validator);
    tools.geyser.hand_on(&mut run);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

//! `test`: every check and every test, in stages; stops at the first stage that fails.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::nextest::{self, Counts, Nextest};
use crate::packages::Package;
use crate::repo::Repo;
use crate::step::{Step, human};
use crate::workspaces::Workspace;
use crate::{
    bench, binaries, clients, deployment, exchange, faketime, guard_tests, idl, imports, lint,
    miri, openapi, plugin, postgres, programs, prove, release, sanitizer, system_packages,
    validator,
};

/// OpenSSL, by which the bank checks signatures of one of its curves.
const BANK_PACKAGES: [Package; 2] = [
    Package::or_tool("pkg-config", "pkg-config"),
    Package::named("libssl-dev"),
];

/// Has cargo link it instead of compiling it from its source, which takes longer than all tests on the bank.
const LINK_OPENSSL: &str = "OPENSSL_NO_VENDOR";

/// Runs all stages and closes with the time table and, as the very last line, the counts.
pub fn run(repo: &Repo, cache: &Cache) -> ExitCode {
    let mut stages = Stages::default();
    let outcome = all(repo, cache, &mut stages);
    let stopped = outcome.err();
    if let Some(error) = &stopped {
        println!("\nerror: {error:#}");
    }
    println!("\nStages:");
    for (name, elapsed) in &stages.finished {
        println!("  {name:<28} {:>10}", human(*elapsed));
    }
    if stopped.is_some() {
        println!("  {:<28} {:>10}", stages.current, "FAILED");
    }
    let Counts { passed, failed } = stages.counts.iter().copied().sum();
    println!("{passed} passed, {failed} failed");
    if stopped.is_some() || failed > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

#[derive(Default)]
struct Stages {
    finished: Vec<(&'static str, Duration)>,
    current: &'static str,
    counts: Vec<Counts>,
}

impl Stages {
    fn stage<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.current = name;
        let started = Instant::now();
        let value = work().with_context(|| format!("stage \"{name}\" failed"))?;
        self.finished.push((name, started.elapsed()));
        Ok(value)
    }

    fn tests(&mut self, name: &'static str, run: impl FnOnce() -> Result<Counts>) -> Result<()> {
        self.current = name;
        let started = Instant::now();
        let counts = run().with_context(|| format!("stage \"{name}\" failed"))?;
        self.counts.push(counts);
        if counts.failed > 0 {
            anyhow::bail!("stage \"{name}\": {} tests failed", counts.failed);
        }
        self.finished.push((name, started.elapsed()));
        Ok(())
    }
}

fn all(repo: &Repo, cache: &Cache, stages: &mut Stages) -> Result<()> {
    stages.stage("system packages", || {
        let tests_need = [
            &clients::packages_needed(repo),
            &postgres::packages_needed(),
            faketime::packages_needed(),
            &BANK_PACKAGES,
            bench::Subject::Requests.packages_needed(),
            deployment::packages_needed(),
            release::packages_needed(),
        ]
        .concat();
        system_packages::require(repo, cache, &tests_need)
    })?;
    let nextest = stages.stage("set up test runner", || Nextest::set_up(repo, cache))?;
    let validator = stages.stage("set up validator", || validator::set_up(repo, cache))?;
    println!("==> Validator: {}", validator.display());
    stages.stage("format", || lint::formatting(repo))?;
    stages.stage("imports", || imports::check(repo))?;
    stages.stage("deployment files", || deployment::check(repo, cache))?;
    stages.stage("clippy", || lint::clippy(repo))?;
    stages.stage("build programs", || programs::build(repo, cache))?;
    stages.tests("program tests (native)", || test_programs(repo, &nextest))?;
    if sanitizer::IS_THERE {
        stages.tests("guard's unsafe (sanitizer)", || {
            guard_tests::under_sanitizer(repo, &nextest)
        })?;
    }
    if miri::is_there(repo) {
        stages.tests("guard's unsafe (miri)", || {
            guard_tests::under_miri(repo, &nextest)
        })?;
    } else {
        println!("==> Miri is left out: the pinned compiler comes without it here");
    }
    stages.stage("IDL", || idl::check(repo))?;
    stages.stage("OpenAPI document", || openapi::check(repo))?;
    let geyser = plugin::Replacement::find(repo)?;
    stages.stage("build plugin", || plugin::build(repo))?;
    stages.stage("build binaries", || binaries::build(repo).map(drop))?;
    stages.stage("Debian package", || release::check(repo))?;
    stages.stage("set up clients", || clients::set_up(repo))?;
    stages.tests("TypeScript client", || clients::typescript::test(repo))?;
    stages.tests("guard's client", || clients::guard::test(repo))?;
    stages.stage("Rust client", || clients::rust::check(repo))?;
    stages.tests("root tests", || {
        test_root(repo, &nextest, &validator, &geyser)
    })?;
    stages.tests("guard's reference", || {
        guard_tests::of_reference(repo, &nextest)
    })?;
    stages.stage("figures of the guard", || {
        bench::check(repo, bench::Subject::Guard)
    })?;
    stages.stage("instructions of requests", || {
        bench::check(repo, bench::Subject::Requests)
    })?;
    stages.stage("tests of the prover", || prove::test(repo))?;
    stages.stage("proof of the guard", || prove::check(repo))?;
    stages.tests("bank tests", || test_bank(repo, &nextest))?;
    stages.tests("plugin tests", || {
        test_plugin(repo, &nextest, &validator, &geyser)
    })
}

fn test_programs(repo: &Repo, nextest: &Nextest) -> Result<Counts> {
    let step = Step::begin(
        repo,
        "test-programs",
        "Testing the on-chain programs' own logic, natively",
        "arithmetic and encodings, before anything runs on a chain",
        "20 s from nothing",
    )?;
    let mut run = nextest.command(repo)?;
    Workspace::programs(repo).apply(&mut run);
    run.args(["--locked", "--no-tests=pass"]);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

fn test_root(
    repo: &Repo,
    nextest: &Nextest,
    validator: &Path,
    geyser: &plugin::Replacement,
) -> Result<Counts> {
    let step = Step::begin(
        repo,
        "test-root",
        "Testing the root workspace, the end-to-end demo included",
        "unit tests, programs in LiteSVM, services, and the whole machine on a real validator",
        "16 minutes, and 3 more from nothing",
    )?;
    let mut run = nextest.command(repo)?;
    Workspace::root(repo).apply(&mut run);
    run.args(["--locked", "--test-threads", &Nextest::threads()?]);
    run.env("SLUICE_VALIDATOR", validator);
    run.env("SLUICE_RECORD_INPUTS", prove::recorded_inputs(repo)?);
    exchange::hand_on(exchange::replacement()?.as_deref(), &mut run);
    geyser.hand_on(&mut run);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

fn test_bank(repo: &Repo, nextest: &Nextest) -> Result<Counts> {
    let step = Step::begin(
        repo,
        "test-bank",
        "Testing the guard on a bank, and called by an older framework's client",
        "the bank has a validator's clock, and clients know the guard from its IDL alone",
        "3 minutes from nothing, 15 s after an edit",
    )?;
    let mut run = nextest.command(repo)?;
    Workspace::bank(repo).apply(&mut run);
    run.arg("--locked").env(LINK_OPENSSL, "1");
    exchange::hand_on(exchange::replacement()?.as_deref(), &mut run);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

fn test_plugin(
    repo: &Repo,
    nextest: &Nextest,
    validator: &Path,
    geyser: &plugin::Replacement,
) -> Result<Counts> {
    let step = Step::begin(
        repo,
        "test-plugin",
        "Testing the Geyser plugin",
        "its filters, its replay and its limits, over real gRPC, and in a validator",
        "a minute from nothing",
    )?;
    let mut run = nextest.command(repo)?;
    Workspace::plugin(repo).apply(&mut run);
    // The profile the validator loads; its dependencies are compiled already.
    run.args(["--locked", "--cargo-profile", "release"])
        .env("SLUICE_VALIDATOR", validator);
    geyser.hand_on(&mut run);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_tests_stop_the_stages_and_are_counted() {
        let mut stages = Stages::default();
        let counts = |passed, failed| Ok(Counts { passed, failed });
        stages.tests("first", || counts(2, 0)).expect("none failed");
        let error = stages.tests("second", || counts(3, 1));
        let text = error.expect_err("one failed").to_string();
        assert_eq!(text, "stage \"second\": 1 tests failed");
        let sum: Counts = stages.counts.iter().copied().sum();
        assert_eq!(
            sum,
            Counts {
                passed: 5,
                failed: 1
            }
        );
        assert_eq!(stages.finished.len(), 1);
    }
}

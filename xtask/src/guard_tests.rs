//! The guard tested in other ways than as published: its `unsafe` under watch, and its reference in its place.

use std::process::Command;

use anyhow::Result;

use crate::command::cargo;
use crate::nextest::{self, Counts, Nextest};
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;
use crate::{exchange, miri, sanitizer};

/// Names the guard that the tests load instead of the published one.
pub const GUARD: &str = "GUARD_SO";

/// The guard's own tests of its walk over accounts, natively.
const WALK: [&str; 5] = [
    "--package",
    "swap-guard",
    "--locked",
    "-E",
    "test(runtime::)",
];

/// The tests that run one guard alone, less the one that measures what only the published guard is bounded in. Those that
/// run guard and reference side by side would compare the reference with itself, and one runs the exchange without a guard.
const ALONE: &str = "package(=sluice-program-tests) & test(guard::) - test(guard::executed_vectors::) \
    - test(guard::forms::) - test(guard::form_refusals::) - test(guard::form_hostility::) - test(guard::random_lists::) \
    - test(=guard::expiry::rejects_an_expired_swap_before_it_calls_anything)";

/// Tests the walk under AddressSanitizer.
pub fn under_sanitizer(repo: &Repo, nextest: &Nextest) -> Result<Counts> {
    let step = Step::begin(
        repo,
        "test-sanitizer",
        "Testing the guard's walk over accounts under AddressSanitizer",
        "it is the one file of the guard with `unsafe`: a read outside of its input must not go unnoticed",
        "2 minutes from nothing",
    )?;
    let mut run = cargo(repo);
    run.args(["nextest", "run", "--no-fail-fast"]);
    sanitizer::apply(repo, &mut run);
    walk(step, nextest, &mut run)
}

/// Tests the walk under miri.
pub fn under_miri(repo: &Repo, nextest: &Nextest) -> Result<Counts> {
    let step = Step::begin(
        repo,
        "test-miri",
        "Testing the guard's walk over accounts under miri",
        "it sees what a sanitizer does not: pointers that may not be used where they point",
        "minutes",
    )?;
    let mut run = cargo(repo);
    run.args(["miri", "nextest", "run", "--no-fail-fast"]);
    miri::apply(repo, &mut run);
    walk(step, nextest, &mut run)
}

fn walk(step: Step, nextest: &Nextest, run: &mut Command) -> Result<Counts> {
    nextest.put_on_path(run)?;
    run.args(WALK);
    let counts = nextest::run(&step, run)?;
    step.done();
    Ok(counts)
}

/// Tests the reference by what the published guard is tested by.
pub fn of_reference(repo: &Repo, nextest: &Nextest) -> Result<Counts> {
    let step = Step::begin(
        repo,
        "test-reference",
        "Testing the guard's reference in the place of the guard",
        "what the two are compared by must itself refuse what the guard promises to refuse",
        "less than a minute",
    )?;
    let mut run = nextest.command(repo)?;
    Workspace::root(repo).apply(&mut run);
    run.args(["--locked", "-E", ALONE]);
    run.env(GUARD, repo.program("guard_reference"));
    exchange::hand_on(exchange::replacement()?.as_deref(), &mut run);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    Ok(counts)
}

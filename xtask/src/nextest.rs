//! Test runner `cargo-nextest`: found or installed, run in full view, its results counted.

use std::env;
use std::ffi::OsString;
use std::iter::Sum;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::command::{cargo, on_path};
use crate::registry_tool::RegistryTool;
use crate::repo::Repo;
use crate::step::Step;

const RUNNER: RegistryTool = RegistryTool {
    package: "cargo-nextest",
    version: "0.9.143",
    binary: "cargo-nextest",
    why: "it runs the tests, each in a process of its own with a time limit",
    takes: "6 minutes on two cores",
    optimized: true,
};

/// More than one, because tests of services wait much of their time, for a slot, a lease or a retry.
const TESTS_PER_CORE: usize = 2;

/// Tests that ran, by how they ended. One that was killed for taking too long has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, counts| Self {
            passed: sum.passed + counts.passed,
            failed: sum.failed + counts.failed,
        })
    }
}

/// A runner that is there.
pub struct Nextest {
    /// Goes in front of PATH when the runner lies in the cache.
    folder: Option<PathBuf>,
}

impl Nextest {
    /// Finds the runner on PATH or installs it into the cache.
    pub fn set_up(repo: &Repo, cache: &Cache) -> Result<Self> {
        if on_path("cargo-nextest").is_some() {
            return Ok(Self { folder: None });
        }
        let runner = RUNNER.install(repo, cache, "")?;
        Ok(Self {
            folder: runner.parent().map(Path::to_path_buf),
        })
    }

    /// `cargo nextest run`, to be given a workspace.
    pub fn command(&self, repo: &Repo) -> Result<Command> {
        let mut run = cargo(repo);
        self.put_on_path(&mut run)?;
        // Every result counts, not only those before the first failure.
        run.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
        Ok(run)
    }

    /// How many tests run at once where most of them wait.
    pub fn threads() -> Result<String> {
        let cores = thread::available_parallelism().context("cannot count the cores")?;
        Ok(cores.get().saturating_mul(TESTS_PER_CORE).to_string())
    }

    /// Lets a cargo command find the runner.
    pub fn put_on_path(&self, run: &mut Command) -> Result<()> {
        if let Some(folder) = &self.folder {
            run.env("PATH", in_front_of_path(folder)?);
        }
        Ok(())
    }
}

fn in_front_of_path(folder: &Path) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_path_buf()).chain(env::split_paths(&path));
    env::join_paths(folders).context("the cache's path cannot stand in PATH")
}

/// Runs the tests in full view and counts them. Failing tests are counts, anything else that goes wrong is an error.
pub fn run(step: &Step, run: &mut Command) -> Result<Counts> {
    let (status, lines) = step.run_in_full_view(run)?;
    let counts = lines.iter().rev().find_map(|line| counts_in(line));
    match counts {
        Some(counts) if status.success() == (counts.failed == 0) => Ok(counts),
        // What the runner says with `--no-tests=pass` has no summary line of other form: nothing ran, nothing failed.
        None if status.success() => Ok(Counts::default()),
        _ => bail!("the test run ended with {status}, see the output above"),
    }
}

/// Reads a line like `Summary [ 4.0s] 3 tests run: 1 passed (1 slow), 1 failed, 1 timed out, 1 skipped`.
fn counts_in(line: &str) -> Option<Counts> {
    let line = line.trim_start().strip_prefix("Summary [")?;
    let (_, results) = line.split_once(" run: ")?;
    let mut counts = Counts::default();
    for part in without_parentheses(results).split(',') {
        let (number, state) = part.trim().split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match state.trim() {
            "passed" => counts.passed += number,
            "skipped" => {}
            // "failed", "timed out", "exec failed" and whatever else is not a success.
            _ => counts.failed += number,
        }
    }
    Some(counts)
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(character),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64) -> Option<Counts> {
        Some(Counts { passed, failed })
    }

    #[test]
    fn reads_the_summary() {
        let all = "     Summary [   0.010s] 2 tests run: 2 passed, 0 skipped";
        assert_eq!(counts_in(all), counts(2, 0));
        let one = "     Summary [   0.010s] 1 test run: 1 passed, 3 skipped";
        assert_eq!(counts_in(one), counts(1, 0));
        let mixed =
            "     Summary [   4.015s] 3 tests run: 1 passed, 1 failed, 1 timed out, 1 skipped";
        assert_eq!(counts_in(mixed), counts(1, 2));
    }

    #[test]
    fn remarks_in_parentheses_are_not_results() {
        let line = "     Summary [  12.3s] 9/12 tests run: 7 passed (1 slow, 2 leaky), 2 failed (1 due to being leaky), 1 skipped";
        assert_eq!(counts_in(line), counts(7, 2));
    }

    #[test]
    fn a_program_that_could_not_start_has_failed() {
        let line = "     Summary [   0.1s] 2 tests run: 1 passed, 1 exec failed, 0 skipped";
        assert_eq!(counts_in(line), counts(1, 1));
    }

    #[test]
    fn other_lines_are_no_summary() {
        for line in [
            "",
            "Summary",
            "        PASS [ 0.008s] (1/1) t a",
            "     Summary [ 0.0s] x run: y",
        ] {
            assert_eq!(counts_in(line), None, "{line}");
        }
    }

    #[test]
    fn counts_add_up() {
        let sum: Counts = [counts(2, 0), counts(3, 1)].into_iter().flatten().sum();
        assert_eq!(
            sum,
            Counts {
                passed: 5,
                failed: 1
            }
        );
    }
}

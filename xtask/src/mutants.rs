//! `mutants`: builds the guard with one check removed or weakened at a time, and asks the tests to notice each.
//!
//! Not a stage of `test`: it builds the guard once for each mutant. That every mutant still fits the source is a test.

mod list;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::command::cargo;
use crate::guard_tests::GUARD;
use crate::nextest::Nextest;
use crate::output::say;
use crate::programs;
use crate::repo::Repo;
use crate::sbf::library::{copy, replace_once};
use crate::sbf::{ProgramCrate, Toolchain};
use crate::step::Step;
use crate::workspaces::Workspace;
use list::{MUTANTS, Mutant};

/// With this status the test runner says that tests failed; every other failure is one of the run itself.
const TESTS_FAILED: i32 = 100;

/// The tests of the guard: first those that name most refusals, then those that take seconds together, and for what these
/// let live all of them.
const FILTERS: [&str; 3] = [
    "package(sluice-program-tests) & (test(guard::form_refusals::) + test(guard::forms::))",
    "package(sluice-program-tests) & (test(guard::) - test(propert) - test(random_lists) - test(vectors))",
    "package(sluice-program-tests) & test(guard::)",
];

/// Builds and tests every mutant whose name contains `only`, and fails when one survives.
pub fn run(repo: &Repo, cache: &Cache, only: &str) -> Result<()> {
    programs::build(repo, cache)?;
    let workshop = Workshop::set_up(repo, cache)?;
    let chosen: Vec<&Mutant> = MUTANTS.iter().filter(|it| it.name.contains(only)).collect();
    let mut survivors = Vec::new();
    for (index, mutant) in chosen.iter().enumerate() {
        let fate = if workshop.is_noticed(mutant)? {
            "noticed"
        } else {
            survivors.push(mutant.name);
            "SURVIVED"
        };
        say!("    {:>2} {fate}: {}", index + 1, mutant.name);
    }
    say!("{} mutants, {} survived", chosen.len(), survivors.len());
    if survivors.is_empty() {
        return Ok(());
    }
    bail!("no test notices these: {}", survivors.join("; "))
}

/// A copy of the on-chain workspace, in which the guard is changed, and what builds and tests it.
struct Workshop<'a> {
    repo: &'a Repo,
    copy: Repo,
    toolchain: Toolchain,
    nextest: Nextest,
}

impl<'a> Workshop<'a> {
    fn set_up(repo: &'a Repo, cache: &Cache) -> Result<Self> {
        let copied = Repo::at(repo.target().join("mutants"));
        copy(
            &repo.root().join("programs"),
            &copied.root().join("programs"),
        )?;
        Ok(Self {
            repo,
            copy: copied,
            toolchain: Toolchain::set_up(repo, cache)?,
            nextest: Nextest::set_up(repo, cache)?,
        })
    }

    fn is_noticed(&self, mutant: &Mutant) -> Result<bool> {
        let file = source(&self.copy, mutant);
        let good = fs::read_to_string(source(self.repo, mutant))
            .with_context(|| format!("cannot read {}", mutant.file))?;
        fs::write(&file, mutated(&good, mutant)?)?;
        let built = self.build(mutant);
        fs::write(&file, good)?;
        let built = built?;
        for filter in FILTERS {
            if self.do_tests_fail(&built, filter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn build(&self, mutant: &Mutant) -> Result<PathBuf> {
        let step = Step::begin(
            self.repo,
            "mutants-build",
            &format!("Building a guard in which {}", mutant.name),
            "a check that no test needs may be missing one day",
            "a minute for the first, seconds for each other",
        )?;
        let guard = ProgramCrate {
            package: "swap-guard".to_owned(),
            library: "swap_guard".to_owned(),
            manifest: self.copy.root().join("programs/swap-guard/Cargo.toml"),
        };
        self.toolchain.build(&self.copy, &step, &guard)
    }

    fn do_tests_fail(&self, guard: &Path, filter: &str) -> Result<bool> {
        let step = Step::begin(
            self.repo,
            "mutants-test",
            "Testing it",
            "at least one test must fail",
            "seconds, two minutes where no test does",
        )?;
        let mut run = cargo(self.repo);
        self.nextest.put_on_path(&mut run)?;
        // Of the whole workspace, as the tests of the workspace built it: a package by itself has other features.
        run.args(["nextest", "run", "--workspace"]);
        Workspace::root(self.repo).apply(&mut run);
        run.args(["--locked", "-E", filter]).env(GUARD, guard);
        let status = step.run_to_its_end(&mut run)?;
        failed(status)
    }
}

fn failed(status: ExitStatus) -> Result<bool> {
    match status.code() {
        Some(0) => Ok(false),
        Some(TESTS_FAILED) => Ok(true),
        _ => bail!("the test run ended with {status}; its output is in target/logs"),
    }
}

fn source(repo: &Repo, mutant: &Mutant) -> PathBuf {
    repo.root()
        .join("programs/swap-guard/src")
        .join(mutant.file)
}

fn mutated(good: &str, mutant: &Mutant) -> Result<String> {
    replace_once(good, mutant.from, mutant.to).with_context(|| {
        format!(
            "{} does not have once what the mutant \"{}\" replaces: correct its line in xtask/src/mutants/list.rs",
            mutant.file, mutant.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_mutant_fits_the_source_and_changes_it() {
        let repo = Repo::locate().expect("a checkout");
        let mut names = HashSet::new();
        for mutant in &MUTANTS {
            let good = fs::read_to_string(source(&repo, mutant)).expect("a file of the guard");
            let mutated = mutated(&good, mutant).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(mutated, good, "{}", mutant.name);
            assert!(names.insert(mutant.name), "two are called {}", mutant.name);
        }
    }
}

//! `test`: every check and every test, in stages; stops at the first stage that fails.

mod beside;
mod on_chain;
mod packages;
mod services;
mod stages;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;

use crate::cache::Cache;
use crate::nextest::Nextest;
use crate::repo::Repo;
use crate::validator;

use stages::Stages;

/// Part of the tests that runs without the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// What a validator loads: the on-chain programs with the guard's proof, and the Geyser plugin.
    OnChain,
    /// What is published: the Debian package, and the Rust client as its users take it.
    Packages,
}

impl Part {
    /// As it is named on the command line.
    const fn name(self) -> &'static str {
        match self {
            Self::OnChain => "on-chain",
            Self::Packages => "packages",
        }
    }
}

/// Runs the stages of these parts, or without any all stages, and closes with the time table and, as the very last line,
/// the counts.
pub fn run(repo: &Repo, cache: &Cache, parts: &[Part]) -> ExitCode {
    let mut stages = Stages::default();
    let outcome = if parts.is_empty() {
        services::all(repo, cache, &mut stages)
    } else {
        parts.iter().try_for_each(|part| match part {
            Part::OnChain => on_chain::all(repo, cache, &mut stages),
            Part::Packages => packages::all(repo, cache, &mut stages),
        })
    };
    stages.close(outcome.err().as_ref())
}

/// What tests run by.
struct Tools {
    nextest: Nextest,
    validator: PathBuf,
}

impl Tools {
    fn set_up(repo: &Repo, cache: &Cache, stages: &mut Stages) -> Result<Self> {
        let nextest = stages.stage("set up test runner", || Nextest::set_up(repo, cache))?;
        let validator = stages.stage("set up validator", || validator::set_up(repo, cache))?;
        println!("==> Validator: {}", validator.display());
        Ok(Self { nextest, validator })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_as_the_command_line_takes_them() {
        for part in Part::value_variants() {
            assert_eq!(Part::from_str(part.name(), false), Ok(*part));
        }
    }
}

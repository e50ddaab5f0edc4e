//! `test`: every check and every test, in stages; stops at the first stage that fails.
//!
//! Stages that use one processor run side by side, the last ones of all parts together at the end.

mod beside;
mod on_chain;
mod services;
mod stages;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;

use crate::cache::Cache;
use crate::head_start::HeadStart;
use crate::nextest::Nextest;
use crate::output::say;
use crate::packages::Package;
use crate::repo::Repo;
use crate::{fetch, plugin, programs, system_packages, validator};

use stages::Stages;

/// Part of the tests that runs without the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The root workspace: crates, services, clients, packages, and the whole machine on a local chain.
    Services,
    /// What a validator loads: the on-chain programs with the guard's proof, and the Geyser plugin.
    OnChain,
}

impl Part {
    fn packages_needed(self, repo: &Repo) -> Vec<Package> {
        match self {
            Self::Services => services::packages_needed(repo),
            Self::OnChain => Vec::new(),
        }
    }
}

/// Runs the stages of these parts, or without any of all, and closes with the time table and, as the very last line, the
/// counts.
pub fn run(repo: &Repo, cache: &Cache, parts: &[Part]) -> ExitCode {
    let parts = if parts.is_empty() {
        Part::value_variants()
    } else {
        parts
    };
    let mut stages = Stages::default();
    let outcome = all(repo, cache, parts, &mut stages);
    stages.close(outcome.err().as_ref())
}

fn all(repo: &Repo, cache: &Cache, parts: &[Part], stages: &mut Stages) -> Result<()> {
    let needed = parts.iter().flat_map(|part| part.packages_needed(repo));
    let needed: Vec<_> = needed.collect();
    stages.stage("system packages", || {
        system_packages::require(repo, cache, &needed)
    })?;
    let downloading = parts
        .contains(&Part::Services)
        .then(|| HeadStart::begin(repo, fetch::TASK))
        .transpose()?;
    let tools = Tools::set_up(repo, cache, stages)?;
    if let Some(packages) = downloading {
        stages.stage("download packages", || packages.finish())?;
    }
    let mut last = Vec::new();
    for part in parts {
        last.extend(match part {
            Part::Services => services::test(repo, cache, &tools, stages)?,
            Part::OnChain => on_chain::test(repo, &tools, stages)?,
        });
    }
    stages.side_by_side(last)
}

/// What tests of both parts run by. The programs and the plugin are built and published beside it.
struct Tools {
    nextest: Nextest,
    validator: PathBuf,
    geyser: plugin::Replacement,
    /// The checkout, as what is tested is built from it.
    linted: Repo,
}

impl Tools {
    fn set_up(repo: &Repo, cache: &Cache, stages: &mut Stages) -> Result<Self> {
        let nextest = stages.stage("set up test runner", || Nextest::set_up(repo, cache))?;
        let validator = stages.stage("set up validator", || validator::set_up(repo, cache))?;
        say!("==> Validator: {}", validator.display());
        stages.stage("build programs", || programs::build(repo, cache))?;
        let geyser = plugin::Replacement::find(repo)?;
        stages.stage("build plugin", || plugin::build(repo))?;
        Ok(Self {
            nextest,
            validator,
            geyser,
            linted: repo.linted_as_it_is_built(),
        })
    }
}

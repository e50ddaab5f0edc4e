//! `build`: builds the parts that live outside the root workspace.

use anyhow::Result;
use clap::ValueEnum;

use crate::cache::Cache;
use crate::output::say;
use crate::repo::Repo;
use crate::{plugin, programs, validator};

/// A part that can be built by itself.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// On-chain programs, to target/programs.
    Programs,
    /// Geyser plugin, to target/geyser-plugin.
    Plugin,
    /// A validator that fits the plugin: found on this machine, else built.
    Validator,
    /// All of these.
    All,
}

pub fn run(repo: &Repo, cache: &Cache, part: Part) -> Result<()> {
    let wanted = |one| part == one || part == Part::All;
    if wanted(Part::Validator) {
        let validator = validator::set_up(repo, cache)?;
        say!("==> Validator: {}", validator.display());
    }
    if wanted(Part::Programs) {
        programs::build(repo, cache)?;
    }
    if wanted(Part::Plugin) {
        plugin::check_compiler(repo, cache)?;
        plugin::build(repo)?;
    }
    Ok(())
}

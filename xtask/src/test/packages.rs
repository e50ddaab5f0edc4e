//! What is published, tested as its users install it: the Debian package, and the Rust client.

use anyhow::Result;

use super::stages::Stages;
use crate::cache::Cache;
use crate::repo::Repo;
use crate::{binaries, clients, release, system_packages};

/// Sets up what the stages need, builds and tests.
pub fn all(repo: &Repo, cache: &Cache, stages: &mut Stages) -> Result<()> {
    stages.stage("system packages", || {
        system_packages::require(repo, cache, release::packages_needed())
    })?;
    stages.stage("build binaries", || {
        binaries::build(&repo.linted_as_it_is_built()).map(drop)
    })?;
    stages.stage("Debian package", || release::check(repo))?;
    stages.stage("Rust client", || clients::rust::check(repo))
}

//! System packages that a whole set-up needs, asked for at once instead of one per failed attempt.

use anyhow::Result;

use crate::cache::Cache;
use crate::packages::{self, Package};
use crate::repo::Repo;
use crate::{sbf, validator};

/// Installs what is missing when run by root, else says how and stops. `more` is what the caller needs beside the
/// builds.
pub fn require(repo: &Repo, cache: &Cache, more: &[Package]) -> Result<()> {
    let mut needed = sbf::packages_needed().to_vec();
    needed.extend_from_slice(validator::packages_needed(repo, cache)?);
    needed.extend_from_slice(more);
    packages::require(repo, &needed, "Building and testing Sluice")
}

//! All system packages that a whole set-up needs, asked for at once: one line to run, not one per failed attempt.

use anyhow::Result;

use crate::cache::Cache;
use crate::repo::Repo;
use crate::{packages, sbf, validator};

/// Installs what is missing when run by root, else says how and stops.
pub fn require(repo: &Repo, cache: &Cache) -> Result<()> {
    let mut needed = sbf::packages_needed().to_vec();
    needed.extend_from_slice(validator::packages_needed(repo, cache)?);
    packages::require(
        repo,
        &needed,
        "Building the on-chain programs and the validator",
    )
}

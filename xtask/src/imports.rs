//! `imports`: checks which packages and modules import which, in all workspaces.
//!
//! `deny.toml` holds the part of the matrix that a dependency ban can say; here it is compared with the whole.

mod bans;
mod circles;
mod matrix;
mod outside;
mod packages;
mod rooms;
mod source;
mod tree;
mod unused;

#[cfg(test)]
mod tests;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::output::say;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;

use self::packages::Package;

/// Fails when a package, a module or a file imports what it may not.
pub fn check(repo: &Repo) -> Result<()> {
    let step = Step::begin(
        repo,
        "imports",
        "Checking who imports whom",
        "rooms stay apart only while no import joins them, and what is not imported is not depended on",
        "2 s",
    )?;
    let mut packages = Vec::new();
    let mut bans = Vec::new();
    for workspace in Workspace::all(repo) {
        let of_workspace = packages::of_workspace(repo, &workspace)
            .with_context(|| format!("in the {} workspace", workspace.name))?;
        if workspace.is_root() {
            let file = repo.root().join("deny.toml");
            let text = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            bans = bans::violations(&of_workspace, &text);
        }
        packages.extend(of_workspace);
    }
    let found = violations(repo, &packages, bans);
    for violation in &found {
        say!("    {violation}");
    }
    if !found.is_empty() {
        bail!(
            "{} imports are not allowed; the tables in xtask/src/imports say what is",
            found.len()
        );
    }
    step.done();
    Ok(())
}

/// All violations, with files as seen from the root.
fn violations(repo: &Repo, packages: &[Package], bans: Vec<String>) -> Vec<String> {
    let mut found = [
        matrix::violations(packages),
        bans,
        unused::violations(packages),
        rooms::violations(packages),
        outside::violations(repo.root(), packages),
        circles::violations(packages),
    ]
    .concat();
    let root = format!("{}/", repo.root().display());
    for violation in &mut found {
        *violation = violation.replace(&root, "");
    }
    found
}

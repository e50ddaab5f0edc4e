//! Formatting and lints, in all workspaces.

use anyhow::{Context, Result};

use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;

/// Fails on the first file that rustfmt would change.
pub fn formatting(repo: &Repo) -> Result<()> {
    let step = Step::begin(
        repo,
        "fmt",
        "Checking the formatting",
        "one style keeps changes readable",
        "2 s",
    )?;
    for workspace in Workspace::all(repo) {
        let mut check = workspace.cargo(repo, &["fmt", "--all"]);
        step.run(check.args(["--", "--check", "--color", "never"]))
            .with_context(|| format!("`cargo fmt` in the {} workspace mends it", workspace.name))?;
    }
    step.done();
    Ok(())
}

/// Builds everything in a workspace and fails on the first warning of the compiler or clippy. The checkout must be one that
/// is linted as it is built; what is built from it afterwards is found built.
pub fn build(repo: &Repo, workspace: &Workspace) -> Result<()> {
    let name = workspace.name;
    let step = Step::begin(
        repo,
        &format!("build-{name}"),
        &format!("Building and linting the {name} workspace"),
        "no warning of the compiler or of clippy is left standing",
        "5 minutes from nothing, seconds after an edit",
    )?;
    let words = ["build", "--workspace", "--all-targets", "--locked"];
    step.run(&mut workspace.cargo(repo, &words))?;
    step.done();
    Ok(())
}

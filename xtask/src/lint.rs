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

/// Fails on the first warning of the compiler or clippy in the programs and in the plugin.
pub fn on_chain(repo: &Repo) -> Result<()> {
    for workspace in [Workspace::programs(repo), Workspace::plugin(repo)] {
        let name = workspace.name;
        let step = Step::begin(
            repo,
            &format!("clippy-{name}"),
            &format!("Linting the {name} workspace"),
            "no warning of the compiler or of clippy is left standing",
            "a minute from nothing, seconds after an edit",
        )?;
        let words = ["clippy", "--workspace", "--all-targets", "--locked"];
        let mut clippy = workspace.cargo(repo, &words);
        step.run(clippy.args(["--", "-D", "warnings"]))?;
        step.done();
    }
    Ok(())
}

/// Builds everything in the root workspace and fails on the first warning of the compiler or clippy. The checkout must be
/// one that is linted as it is built; what is built from it afterwards is found built.
pub fn build(repo: &Repo) -> Result<()> {
    let step = Step::begin(
        repo,
        "build-root",
        "Building and linting the root workspace",
        "no warning of the compiler or of clippy is left standing",
        "5 minutes from nothing, seconds after an edit",
    )?;
    let words = ["build", "--workspace", "--all-targets", "--locked"];
    step.run(&mut Workspace::root(repo).cargo(repo, &words))?;
    step.done();
    Ok(())
}

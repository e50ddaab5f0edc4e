//! Trials of package and image: used as their users use them, in namespaces of their own, by scripts of `deploy/checks`.

use std::path::Path;

use anyhow::Result;

use crate::command::{capture, command};
use crate::deployment;
use crate::output::say;
use crate::repo::Repo;
use crate::step::Step;

/// What a script says of a part that this machine does not let it do, with the reason behind it.
const LEFT_OUT: &str = " is left out: ";

/// Installs the first package on a copy of this machine in memory, upgrades it to the second, and removes it.
/// Its unit is run by a systemd in those namespaces, where the machine lets one start.
pub fn package(repo: &Repo, first: &Path, second: &Path) -> Result<()> {
    let what = "Installing, starting, upgrading and removing the package";
    run(repo, what, "package.sh", &[first, second])
}

/// Starts the image's command as its user.
pub fn image(repo: &Repo, bundle: &Path) -> Result<()> {
    run(repo, "Starting the image's command", "image.sh", &[bundle])
}

fn run(repo: &Repo, what: &str, script: &str, arguments: &[&Path]) -> Result<()> {
    if capture(command(repo, "id").arg("-u"))?.trim() != "0" {
        say!("==> {what} is left out: only root may make the namespaces for it");
        return Ok(());
    }
    let step = Step::begin(
        repo,
        script,
        what,
        "what is published must work there",
        "15 s",
    )?;
    let mut trial = command(repo, "unshare");
    trial.args(["--mount", "--net", "--pid", "--fork", "--kill-child"]);
    trial.arg(deployment::folder(repo).join("checks").join(script));
    let lines = step.read(trial.args(arguments))?;
    for line in lines.iter().filter(|line| line.contains(LEFT_OUT)) {
        say!("    {line}");
    }
    step.done();
    Ok(())
}

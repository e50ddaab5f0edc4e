//! The TypeScript client: built from the API's document and the guard's IDL, and tested as it is published.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::installed;
use super::node::{self, NodeJs};
use super::python::Python;
use crate::command::command;
use crate::nextest::Counts;
use crate::output::say;
use crate::repo::Repo;
use crate::step::Step;

/// Name of its packages' folder under `target/clients`.
const PACKAGES: &str = "typescript";

/// How long one of its tests may take, milliseconds: on a busy machine some need a minute.
pub(super) const TEST_TIMEOUT: &str = "--test-timeout=300000";

/// Builds it and runs its tests, and no others.
pub fn run(repo: &Repo) -> Result<()> {
    let node = node::find(repo, &Python::find(repo)?)?;
    build(repo, &node)?;
    let Counts { passed, failed } = test(repo)?;
    say!("{passed} passed, {failed} failed");
    Ok(())
}

/// Installs what builds it.
pub fn install(repo: &Repo, node: &NodeJs) -> Result<()> {
    node::install(repo, node, &folder(repo), PACKAGES)
}

/// Installs what builds it, and builds it.
pub fn build(repo: &Repo, node: &NodeJs) -> Result<()> {
    install(repo, node)?;
    let folder = folder(repo);
    let step = Step::begin(
        repo,
        "typescript-build",
        "Building the TypeScript client",
        "its types are made from openapi.json, its check of transactions from the guard's IDL",
        "10 s",
    )?;
    let words: [&[&str]; 3] = [
        &["scripts/generate.js"],
        &[COMPILER, "--removeComments", "--declaration", "false"],
        &[COMPILER, "--emitDeclarationOnly"],
    ];
    for words in words {
        step.run(script(repo, &folder).args(words))?;
    }
    // The tests pack the client with the package manager, which need not be on PATH.
    let npm = node.npm.display().to_string();
    fs::write(installed(repo).join(NPM), npm).context("cannot note where npm is")?;
    step.done();
    Ok(())
}

/// Checks its types as a caller has them, and runs its tests: of its code, of its size, and of the packed package.
pub fn test(repo: &Repo) -> Result<Counts> {
    let folder = folder(repo);
    let npm = noted_npm(repo)?;
    let step = Step::begin(
        repo,
        "typescript-test",
        "Testing the TypeScript client",
        "its types, its code, its size, and the package installed in a clean folder",
        "20 s",
    )?;
    step.run(script(repo, &folder).args([COMPILER, "--project", "tests/tsconfig.json"]))?;
    let mut run = script(repo, &folder);
    // Node has WebSockets without being asked from 22 on.
    run.args(["--test", "--experimental-websocket", "--test-reporter=tap"]);
    run.args([TEST_TIMEOUT, "tests/"]);
    let lines = step.read(run.env("SLUICE_NPM", npm))?;
    step.done();
    counts(&lines)
}

/// The compiler's script.
pub(super) const COMPILER: &str = "node_modules/typescript/lib/tsc.js";

/// Holds the path of the package manager's script.
const NPM: &str = "bin/npm-script";

/// The path of the package manager's script, as the build of the client noted it.
pub(super) fn noted_npm(repo: &Repo) -> Result<String> {
    fs::read_to_string(installed(repo).join(NPM)).context("the TypeScript client is not built")
}

/// Where its sources are.
pub(super) fn folder(repo: &Repo) -> PathBuf {
    repo.root().join("clients/typescript")
}

pub(super) fn script(repo: &Repo, folder: &Path) -> Command {
    let mut node = command(repo, installed(repo).join("bin/node"));
    node.current_dir(folder);
    node
}

/// The counts at the end of what Node's test runner says.
pub(super) fn counts(lines: &[String]) -> Result<Counts> {
    let number = |name: &str| {
        let mut lines = lines.iter().rev();
        lines.find_map(|line| {
            line.strip_prefix("# ")?
                .strip_prefix(name)?
                .trim()
                .parse()
                .ok()
        })
    };
    match (number("pass "), number("fail ")) {
        (Some(passed), Some(failed)) if passed > 0 => Ok(Counts { passed, failed }),
        _ => bail!("the test runner did not say how many tests passed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_at_the_end() {
        let lines = ["# pass the salt", "ok 1", "# pass 12", "# fail 3"].map(str::to_owned);
        let Counts { passed, failed } = counts(&lines).expect("counts");
        assert_eq!((passed, failed), (12, 3));
        assert!(counts(&["# pass 0".to_owned(), "# fail 0".to_owned()]).is_err());
    }
}

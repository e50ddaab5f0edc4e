//! `openapi`: the description of the API, printed by the API itself.

use anyhow::Result;

use crate::generated::Generated;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;

const FILE: Generated = Generated {
    path: "openapi.json",
    source: "the API",
    command: "cargo xtask openapi",
};

/// Writes `openapi.json` anew.
pub fn write(repo: &Repo) -> Result<()> {
    FILE.write(repo, &generate(repo)?)
}

/// Fails when `openapi.json` is not what the API says of itself.
pub fn check(repo: &Repo) -> Result<()> {
    FILE.check(repo, &generate(repo)?)
}

fn generate(repo: &Repo) -> Result<String> {
    let step = Step::begin(
        repo,
        "openapi",
        "Generating the API's description",
        "typed clients and the fuzzing of the API are made from it",
        "3 minutes from nothing, seconds after an edit",
    )?;
    // The whole workspace is named so that its crates get the same features as in a test run, and are compiled once.
    let words = [
        "build",
        "--workspace",
        "--locked",
        "--bin",
        "sluice-openapi",
    ];
    step.run(&mut Workspace::root(repo).cargo(repo, &words))?;
    let program = repo.target().join("debug/sluice-openapi");
    let lines = step.read(&mut crate::command::command(repo, program))?;
    step.done();
    Ok(lines.join("\n") + "\n")
}

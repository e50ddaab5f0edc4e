//! `openapi`: the description of the API, printed by the API itself.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;

/// Writes `openapi.json` anew.
pub fn write(repo: &Repo) -> Result<()> {
    let file = committed(repo);
    fs::write(&file, generate(repo)?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!("==> Wrote {}", repo.shown(&file));
    Ok(())
}

/// Fails when `openapi.json` is not what the API says of itself.
pub fn check(repo: &Repo) -> Result<()> {
    let file = committed(repo);
    let present =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    if present != generate(repo)? {
        bail!(
            "{} differs from what the API says of itself; `cargo xtask openapi` writes it anew",
            repo.shown(&file)
        );
    }
    Ok(())
}

fn committed(repo: &Repo) -> PathBuf {
    repo.root().join("openapi.json")
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

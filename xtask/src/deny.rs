//! `deny`: licences, banned imports and sources of all lock files.

use anyhow::{Result, bail};

use crate::cache::Cache;
use crate::command::{command, is_executable, on_path};
use crate::registry_tool::RegistryTool;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;

const CHECKER: RegistryTool = RegistryTool {
    package: "cargo-deny",
    version: "0.20.2",
    binary: "cargo-deny",
    why: "it checks licences, imports and sources of every dependency",
    takes: "4 minutes on two cores",
    optimized: true,
};

/// Runs the checks; `install` builds `cargo-deny` into the cache first when it is not there.
pub fn run(repo: &Repo, cache: &Cache, install: bool) -> Result<()> {
    let cached = CHECKER.path(cache);
    let deny = match on_path("cargo-deny") {
        Some(found) => found,
        None if install => CHECKER.install(repo, cache, "")?,
        None if is_executable(&cached) => cached,
        None => bail!(
            "cargo-deny is neither on PATH nor in the cache; `cargo xtask deny --install` builds it"
        ),
    };
    let step = Step::begin(
        repo,
        "deny",
        "Checking licences, imports and sources of every dependency",
        "what is shipped must be free to ship, come from one registry, and keep to who may import whom",
        "10 s",
    )?;
    for workspace in Workspace::all(repo) {
        let mut check = command(repo, &deny);
        check.arg("--manifest-path").arg(&workspace.manifest);
        check.arg("--config").arg(repo.root().join("deny.toml"));
        check.args(["--locked", "check"]);
        // Not "advisories": their database is a download from elsewhere.
        check.args(["licenses", "sources"]);
        if workspace.is_root() {
            // The bans say who may import whom among the crates of this workspace.
            check.arg("bans");
        }
        step.run(&mut check)?;
    }
    step.done();
    Ok(())
}

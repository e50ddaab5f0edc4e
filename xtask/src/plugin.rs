//! `build plugin`: the Geyser plugin, compiled and published under `target/geyser-plugin`.

use anyhow::{Result, bail};

use crate::cache::Cache;
use crate::command::cargo;
use crate::publish::publish;
use crate::repo::Repo;
use crate::step::Step;
use crate::validator;

/// Environment and folder shared by every build of the plugin's workspace, so that they reuse each other's work.
pub fn target(repo: &Repo) -> std::path::PathBuf {
    repo.target().join("geyser-plugin-build")
}

/// Stops when the validators at hand were all built by another rustc than the plugin would be.
pub fn check_compiler(repo: &Repo, cache: &Cache) -> Result<()> {
    let search = validator::search(repo, cache)?;
    if let Some(fitting) = search.fitting {
        println!(
            "==> The plugin will fit {} (built by the pinned rustc)",
            repo.shown(&fitting)
        );
        return Ok(());
    }
    if let Some((path, unfit)) = search.passed_over.first() {
        bail!(
            "the Geyser plugin would not fit {}: {unfit}\n{}",
            path.display(),
            validator::explanation(unfit)
        );
    }
    println!("==> No validator here yet; one built later by the pinned rustc will fit the plugin");
    Ok(())
}

/// Builds and publishes the plugin. The compiler check comes before.
pub fn build(repo: &Repo) -> Result<()> {
    let step = Step::begin(
        repo,
        "plugin",
        "Building the Geyser plugin",
        "the validator loads it, and it serves the chain's account and transaction stream over gRPC",
        "2 minutes from nothing, seconds after an edit",
    )?;
    let mut build = cargo(repo);
    build.args(["build", "--release", "--locked", "--manifest-path"]);
    build.arg(repo.plugin_manifest());
    step.run(build.env("CARGO_TARGET_DIR", target(repo)))?;
    let built = target(repo).join("release/libsluice_geyser_plugin.so");
    publish(&built, &repo.plugin())?;
    step.done();
    Ok(())
}

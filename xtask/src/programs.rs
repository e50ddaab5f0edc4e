//! `build programs`: every on-chain program, compiled and published under `target/programs`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cache::Cache;
use crate::command::{capture, cargo};
use crate::publish::publish;
use crate::repo::Repo;
use crate::sbf::{ProgramCrate, Toolchain};
use crate::step::Step;

/// Packages of the programs that a local chain loads; the others are for tests and benchmarks.
const SERVED: [&str; 2] = ["swap-guard", "local-cpmm"];

/// Sets the toolchain up and builds every program crate.
pub fn build(repo: &Repo, cache: &Cache) -> Result<()> {
    build_those(repo, cache, |_| true)
}

/// Sets the toolchain up and builds what a local chain loads.
pub fn build_served(repo: &Repo, cache: &Cache) -> Result<()> {
    build_those(repo, cache, |program| {
        SERVED.contains(&program.package.as_str())
    })
}

fn build_those(
    repo: &Repo,
    cache: &Cache,
    is_wanted: impl Fn(&ProgramCrate) -> bool,
) -> Result<()> {
    let toolchain = Toolchain::set_up(repo, cache)?;
    let programs = discover(repo)?;
    for program in programs.iter().filter(|program| is_wanted(program)) {
        let step = Step::begin(
            repo,
            &format!("program-{}", program.package),
            &format!("Building the on-chain program {}", program.package),
            &format!("the chain runs it; by {}", toolchain.describe()),
            "a minute from nothing, seconds after an edit",
        )?;
        let built = toolchain.build(repo, &step, program)?;
        publish(&built, &repo.program(&program.library))?;
        step.done();
    }
    Ok(())
}

/// The crates of the on-chain workspace that compile to a program.
fn discover(repo: &Repo) -> Result<Vec<ProgramCrate>> {
    let mut metadata = cargo(repo);
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    metadata
        .arg("--manifest-path")
        .arg(repo.programs_manifest());
    let text = capture(&mut metadata)?;
    let metadata = serde_json::from_str(&text).context("cargo metadata printed no JSON")?;
    let programs = program_crates(&metadata).context("cargo metadata has an unknown shape")?;
    if programs.is_empty() {
        bail!("no crate with `crate-type = [\"cdylib\", ..]` in programs/");
    }
    Ok(programs)
}

/// A program is the `cdylib` of its package. `None` when the metadata lacks a field it always has.
fn program_crates(metadata: &Value) -> Option<Vec<ProgramCrate>> {
    let mut programs = Vec::new();
    for package in metadata["packages"].as_array()? {
        for target in package["targets"].as_array()? {
            let crate_types = target["crate_types"].as_array()?;
            if crate_types.iter().any(|kind| kind == "cdylib") {
                programs.push(ProgramCrate {
                    package: package["name"].as_str()?.to_owned(),
                    library: target["name"].as_str()?.replace('-', "_"),
                    manifest: PathBuf::from(package["manifest_path"].as_str()?),
                });
            }
        }
    }
    Some(programs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn programs_are_the_packages_with_a_cdylib() {
        let metadata = json!({"packages": [
            {"name": "swap-guard", "manifest_path": "/p/swap-guard/Cargo.toml", "targets": [
                {"name": "swap_guard", "crate_types": ["cdylib", "lib"]},
                {"name": "encoding", "crate_types": ["bin"]},
            ]},
            {"name": "bpf-libcalls", "manifest_path": "/p/bpf-libcalls/Cargo.toml", "targets": [
                {"name": "bpf_libcalls", "crate_types": ["lib"]},
            ]},
        ]});
        let expected = ProgramCrate {
            package: "swap-guard".into(),
            library: "swap_guard".into(),
            manifest: "/p/swap-guard/Cargo.toml".into(),
        };
        assert_eq!(program_crates(&metadata), Some(vec![expected]));
        assert_eq!(program_crates(&json!({})), None);
    }
}

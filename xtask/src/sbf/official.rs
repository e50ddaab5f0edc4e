//! Official SBF toolchain: `cargo build-sbf`, which brings its own compiler.

use std::path::PathBuf;

use anyhow::Result;

use super::ProgramCrate;
use crate::command::{cargo, on_path};
use crate::repo::Repo;
use crate::step::Step;

pub fn is_there() -> bool {
    on_path("cargo-build-sbf").is_some()
}

/// Builds one program and returns the compiled file.
pub fn build(repo: &Repo, step: &Step, program: &ProgramCrate) -> Result<PathBuf> {
    let target = repo.target().join("sbf-official");
    let out = target.join("deploy");
    let mut build = cargo(repo);
    // By manifest: at a workspace root it would try to build every member, libraries included.
    build.args(["build-sbf", "--manifest-path"]);
    build.arg(&program.manifest).arg("--sbf-out-dir").arg(&out);
    step.run(build.env("CARGO_TARGET_DIR", &target))?;
    Ok(out.join(format!("{}.so", program.library)))
}

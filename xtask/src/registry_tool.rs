//! Tools that cargo builds from the Rust crate registry into the cache.

use std::path::PathBuf;

use anyhow::Result;

use crate::cache::{Cache, remove};
use crate::command::cargo;
use crate::repo::Repo;
use crate::step::Step;

/// A program to install, with the words that explain it to the reader.
#[derive(Clone, Copy, Debug)]
pub struct RegistryTool {
    pub package: &'static str,
    pub version: &'static str,
    /// The program wanted of the package.
    pub binary: &'static str,
    pub why: &'static str,
    /// About how long the build takes.
    pub takes: &'static str,
    /// Whether it computes for so long that optimizing it, which takes as long as compiling it, is worth it.
    pub optimized: bool,
}

impl RegistryTool {
    /// Where the program lies once it is installed.
    pub fn path(&self, cache: &Cache) -> PathBuf {
        cache.folder(self.binary).join("bin").join(self.binary)
    }

    /// Installs the program unless that has been done with this version and `compiler`, any text that, when it changes,
    /// makes the built program useless.
    pub fn install(&self, repo: &Repo, cache: &Cache, compiler: &str) -> Result<PathBuf> {
        let recipe = format!("{} {} {compiler}\n", self.package, self.version);
        // Outside the tool's own folder, so that an interrupted build goes on where it stopped.
        let build = cache.folder(&format!("{}.build", self.binary));
        cache.tool(self.binary, &recipe, |folder| {
            let step = Step::begin(
                repo,
                self.binary,
                &format!(
                    "Building {} {} from the Rust crate registry",
                    self.binary, self.version
                ),
                self.why,
                &format!("{}, once", self.takes),
            )?;
            step.explain();
            let mut install = cargo(repo);
            install.args(["install", self.package, "--version", self.version]);
            install.args(["--locked", "--bin", self.binary, "--root"]);
            if !self.optimized {
                install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
            }
            step.run(install.arg(folder).env("CARGO_TARGET_DIR", &build))?;
            remove(&build)?;
            step.done();
            Ok(())
        })?;
        Ok(self.path(cache))
    }
}

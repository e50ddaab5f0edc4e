//! SBF toolchains: compile a program crate into what the chain loads, by the first way at hand.

pub mod library;
pub mod linker;
pub mod llvm;
pub mod official;
pub mod upstream;

use std::path::PathBuf;

use anyhow::Result;

use crate::cache::Cache;
use crate::packages::Package;
use crate::repo::Repo;
use crate::step::Step;

/// A crate of the on-chain workspace that compiles to a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCrate {
    /// Name of the package, as `cargo --package` takes it.
    pub package: String,
    /// Name of the library, with underscores: the stem of the compiled file.
    pub library: String,
    pub manifest: PathBuf,
}

/// System packages that are due because programs will be built the upstream way.
pub fn packages_needed() -> &'static [Package] {
    if official::is_there() {
        &[]
    } else {
        &upstream::PACKAGES
    }
}

/// A toolchain that is set up and can build programs.
pub enum Toolchain {
    Official,
    Upstream(upstream::Toolchain),
}

impl Toolchain {
    /// Takes the official toolchain when it is installed, else sets up the upstream one.
    pub fn set_up(repo: &Repo, cache: &Cache) -> Result<Self> {
        if official::is_there() {
            return Ok(Self::Official);
        }
        upstream::Toolchain::set_up(repo, cache).map(Self::Upstream)
    }

    /// What the reader should know about the way taken.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Official => "the official toolchain, `cargo build-sbf`",
            Self::Upstream(_) => "upstream BPF: Debian's rustc, LLVM 23 and sbpf-linker",
        }
    }

    /// Builds one program and returns the compiled file.
    pub fn build(&self, repo: &Repo, step: &Step, program: &ProgramCrate) -> Result<PathBuf> {
        match self {
            Self::Official => official::build(repo, step, program),
            Self::Upstream(toolchain) => toolchain.build(repo, step, program),
        }
    }
}

//! Paths of this repository.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Written by the step that builds and lints everything.
const FIRST_LINTED_BUILD: &str = "build-root.log";

/// The checkout that the command was started in.
#[derive(Clone, Debug)]
pub struct Repo {
    root: PathBuf,
    linted_build: Option<LintedBuild>,
}

/// How the builds are done that lint as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LintedBuild {
    /// Whether there was none before: what would make the next one shorter makes this one longer, and is not kept.
    pub is_first: bool,
}

impl Repo {
    /// Finds the checkout from the variable that `cargo run` sets, so that a cached `xtask` binary serves any checkout.
    pub fn locate() -> Result<Self> {
        let own = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = own
            .parent()
            .context("xtask stands in a folder of the repository")?;
        Ok(Self {
            root: root.to_path_buf(),
            linted_build: None,
        })
    }

    /// A checkout, or a copy of parts of one, at this path.
    pub fn at(root: PathBuf) -> Self {
        Self {
            root,
            linted_build: None,
        }
    }

    /// The same checkout, whose workspaces are linted by every build of what is tested.
    pub fn linted_as_it_is_built(&self) -> Self {
        let is_first = !self.logs().join(FIRST_LINTED_BUILD).exists();
        Self {
            linted_build: self.linted_build.or(Some(LintedBuild { is_first })),
            ..self.clone()
        }
    }

    /// How what is tested is built, where every build lints it.
    pub fn linted_build(&self) -> Option<LintedBuild> {
        self.linted_build
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Build output of all workspaces. A symbolic link in continuous integration.
    pub fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// Manifest of the on-chain workspace.
    pub fn programs_manifest(&self) -> PathBuf {
        self.root.join("programs/Cargo.toml")
    }

    /// Manifest of the Geyser plugin's workspace.
    pub fn plugin_manifest(&self) -> PathBuf {
        self.root.join("geyser-plugin/Cargo.toml")
    }

    /// Where a compiled program is published for tests, benchmarks and the local chain. `name` has underscores.
    pub fn program(&self, name: &str) -> PathBuf {
        self.target().join("programs").join(format!("{name}.so"))
    }

    /// Where the compiled Geyser plugin is published.
    pub fn plugin(&self) -> PathBuf {
        self.target()
            .join("geyser-plugin/libsluice_geyser_plugin.so")
    }

    /// Whole output of every command that a step ran.
    pub fn logs(&self) -> PathBuf {
        self.target().join("xtask-logs")
    }

    /// A path as the reader of a message sees it: relative to the checkout when it lies inside.
    pub fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}

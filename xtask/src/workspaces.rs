//! Cargo workspaces of the repository, as the checks see them.

use std::path::PathBuf;
use std::process::Command;

use crate::command::cargo;
use crate::linted_build;
use crate::repo::{LintedBuild, Repo};

/// One workspace with its own lock file.
pub struct Workspace {
    pub name: &'static str,
    pub manifest: PathBuf,
    /// How it is built, where building it lints it.
    linted_build: Option<LintedBuild>,
    /// Build folder for native code; `None` is cargo's own.
    target: Option<PathBuf>,
}

impl Workspace {
    pub fn root(repo: &Repo) -> Self {
        Self {
            name: "root",
            manifest: repo.root().join("Cargo.toml"),
            linted_build: repo.linted_build(),
            target: None,
        }
    }

    /// The on-chain programs, compiled for this machine. Built in the folder of the root workspace, which has a third of what
    /// they need built already: most of what procedural macros are made of.
    pub fn programs(repo: &Repo) -> Self {
        Self {
            name: "programs",
            manifest: repo.programs_manifest(),
            linted_build: repo.linted_build(),
            target: Some(repo.target()),
        }
    }

    /// Built in the folder of the root workspace, which needs half of its crates, too.
    pub fn plugin(repo: &Repo) -> Self {
        Self {
            name: "geyser-plugin",
            manifest: repo.plugin_manifest(),
            linted_build: repo.linted_build(),
            target: Some(repo.target()),
        }
    }

    /// The guard called by an older framework's client. Built in the folder of the root workspace, which has two fifths of
    /// what it needs built already.
    pub fn anchor_client(repo: &Repo) -> Self {
        Self {
            name: "anchor-client",
            manifest: repo.root().join("tests/anchor-client/Cargo.toml"),
            linted_build: repo.linted_build(),
            target: Some(repo.target()),
        }
    }

    /// The decoders under a fuzzer. Only a nightly compiler builds it, so that here it is formatted and its lock file
    /// and imports are checked.
    pub fn fuzz(repo: &Repo) -> Self {
        Self {
            name: "fuzz",
            manifest: repo.root().join("tests/fuzz/Cargo.toml"),
            linted_build: None,
            target: Some(repo.target().join("fuzz")),
        }
    }

    pub fn all(repo: &Repo) -> [Self; 5] {
        [
            Self::root(repo),
            Self::programs(repo),
            Self::plugin(repo),
            Self::anchor_client(repo),
            Self::fuzz(repo),
        ]
    }

    pub fn is_root(&self) -> bool {
        self.name == "root"
    }

    /// `cargo <words>` on this workspace.
    pub fn cargo(&self, repo: &Repo, words: &[&str]) -> Command {
        let mut command = cargo(repo);
        command.args(words);
        self.apply(&mut command);
        command
    }

    /// Points a cargo command at this workspace.
    pub fn apply(&self, command: &mut Command) {
        command.arg("--manifest-path").arg(&self.manifest);
        if let Some(target) = &self.target {
            command.env("CARGO_TARGET_DIR", target);
        }
        if let Some(build) = self.linted_build {
            linted_build::apply(build, command);
        }
    }
}

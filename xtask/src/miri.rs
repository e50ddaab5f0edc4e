//! Miri on the pinned toolchain, where a machine's compiler comes with it: rustup's stable one does not.

use std::process::Command;

use crate::command::cargo;
use crate::repo::Repo;
use crate::workspaces::Workspace;

/// Whether this machine's compiler comes with it.
pub fn is_there(repo: &Repo) -> bool {
    cargo(repo)
        .args(["miri", "--version"])
        .output()
        .is_ok_and(|answer| answer.status.success())
}

/// Makes a cargo command that begins with `miri` interpret the on-chain workspace, in a target folder of its own.
pub fn apply(repo: &Repo, command: &mut Command) {
    Workspace::programs(repo).apply(command);
    command.env("CARGO_TARGET_DIR", repo.target().join("programs-miri"));
    // Its switches are the compiler's alone: nothing that is shipped is built like this.
    command.env("RUSTC_BOOTSTRAP", "1");
    // The tests' random cases ask the operating system for their seed.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
}

//! AddressSanitizer: compiles the on-chain workspace with it, on the pinned toolchain.

use std::process::Command;

use crate::repo::Repo;
use crate::workspaces::Workspace;

/// Named, so that only what is tested is instrumented, and no build script or macro.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Whether this machine's compiler comes with it.
pub const IS_THERE: bool = cfg!(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_env = "gnu"
));

/// Makes a cargo command instrument the on-chain workspace, compiled for this machine, in a target folder of its own.
pub fn apply(repo: &Repo, command: &mut Command) {
    Workspace::programs(repo).apply(command);
    command.args(["--target", TARGET]);
    command.env("CARGO_TARGET_DIR", repo.target().join("programs-sanitizer"));
    // The switch is the compiler's alone: nothing that is shipped is built like this.
    command.env("RUSTC_BOOTSTRAP", "1");
    command.env("RUSTFLAGS", "-Zsanitizer=address");
}

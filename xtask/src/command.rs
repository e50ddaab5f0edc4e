//! Commands with a predictable environment.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repo::Repo;

/// `program`, run from the root of the checkout, without what `cargo run` and rustup left in the environment.
///
/// Those variables name this very crate and its toolchain. Handed on, they make build scripts run again, override
/// `rust-toolchain.toml`, and put one compiler's libraries in front of another's.
pub fn command(repo: &Repo, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(repo.root()).stdin(Stdio::null());
    // Output goes through a pipe into a log, and the tests' summary is read from it.
    command.env("CARGO_TERM_COLOR", "never");
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_left_by_cargo_run) {
            command.env_remove(name);
        }
    }
    command
}

/// The cargo that `rust-toolchain.toml` pins.
pub fn cargo(repo: &Repo) -> Command {
    command(repo, "cargo")
}

fn is_left_by_cargo_run(name: &str) -> bool {
    const WHOLE: [&str; 8] = [
        "CARGO",
        "CARGO_CRATE_NAME",
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_PATH",
        "CARGO_PRIMARY_PACKAGE",
        "LD_LIBRARY_PATH",
        "OUT_DIR",
        "RUSTUP_TOOLCHAIN",
    ];
    WHOLE.contains(&name) || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_BIN_")
}

/// The file that running `tool` would start.
pub fn on_path(tool: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(tool))
        .find(|file| is_executable(file))
}

/// Whether the file exists and may be run.
pub fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Runs a short command and returns what it wrote to standard output.
pub fn capture(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` ended with {}\n{}", output.status, why.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as a reader could type it, without its environment.
pub fn show(command: &Command) -> String {
    let mut words = vec![command.get_program().to_os_string()];
    words.extend(command.get_args().map(OsString::from));
    words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_what_cargo_run_leaves_and_keeps_what_the_user_set() {
        for name in [
            "CARGO",
            "CARGO_PKG_NAME",
            "CARGO_BIN_NAME",
            "RUSTUP_TOOLCHAIN",
        ] {
            assert!(is_left_by_cargo_run(name), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "CARGO_NET_OFFLINE",
            "PATH",
            "CI",
        ] {
            assert!(!is_left_by_cargo_run(name), "{name}");
        }
    }

    #[test]
    fn shows_program_and_arguments() {
        let mut command = Command::new("cargo");
        command.args(["build", "--locked"]);
        assert_eq!(show(&command), "cargo build --locked");
    }
}

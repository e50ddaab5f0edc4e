//! Clippy's driver in the compiler's place: what a build compiles is linted.

use std::process::Command;

use crate::repo::LintedBuild;

/// Makes a cargo command that builds lint as well, and fail on a warning.
///
/// Clippy's driver is the compiler with further lints. `cargo clippy` has it check without building, for which all
/// dependencies are checked once more beside being built: that takes half as long as building them.
pub fn apply(build: LintedBuild, command: &mut Command) {
    command.env("RUSTC_WORKSPACE_WRAPPER", DRIVER);
    command.env("CLIPPY_ARGS", DENY_WARNINGS);
    if build.is_first {
        command.env(INCREMENTAL, "0");
    }
}

/// Cargo's switch for what a build leaves to the next one.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

const DRIVER: &str = "clippy-driver";

/// The driver's arguments as `cargo clippy` hands them on.
const DENY_WARNINGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a library of this source is refused as a build would have it.
    fn is_refused(source: &str) -> bool {
        let folder = std::env::temp_dir().join(format!("sluice-lint-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("lib.rs");
        std::fs::write(&file, source).expect("written");
        let mut driver = Command::new(DRIVER);
        apply(LintedBuild { is_first: true }, &mut driver);
        // As cargo starts it: the compiler's name comes first.
        driver.args(["rustc", "--crate-type=lib", "--emit=metadata", "--out-dir"]);
        let output = driver.arg(&folder).arg(&file).output().expect("it runs");
        std::fs::remove_dir_all(&folder).expect("removed");
        !output.status.success()
    }

    #[test]
    fn a_build_refuses_what_the_compiler_and_what_clippy_warns_of() {
        assert!(!is_refused("pub fn one() -> u8 { 1 }"));
        assert!(is_refused("fn never_called() {}"));
        assert!(is_refused("pub fn one() -> u8 { return 1; }"));
    }
}

//! Build script: records the compiler's version for the log and `GetVersion`.
//!
//! The validator and a plugin it loads share Rust-ABI types, so both must come from the same rustc.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    println!("cargo:rustc-env=PLUGIN_RUSTC_VERSION={}", version.trim());
}

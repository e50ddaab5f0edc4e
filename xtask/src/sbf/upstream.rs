//! Upstream BPF toolchain: rustc's own back end, from Debian 12 and the Rust crate registry alone.
//!
//! Debian's rustc 1.96 comes with the sources of its standard library and compiles both to LLVM bitcode; `sbpf-linker`
//! makes an SBPF v3 program of it with LLVM 23.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::library::{Library, RUSTC};
use super::llvm::Llvm;
use super::{ProgramCrate, linker};
use crate::cache::{Cache, remove};
use crate::command::{capture, command};
use crate::packages::{self, Package, debian_release};
use crate::repo::Repo;
use crate::step::Step;

/// Debian's, by absolute path: rustup's stays first on PATH.
const CARGO: &str = "/usr/bin/cargo";

pub const PACKAGES: [Package; 3] = [
    Package::at_least("rustc-web", "1.96"),
    Package::at_least("cargo-web", "1.96"),
    Package::at_least("rust-web-src", "1.96"),
];

/// Codename of Debian 12, the release this way was tried on.
const DEBIAN: &str = "bookworm";

/// Options of the compiler and the linker, beside the linker's path.
const FLAGS: [&str; 18] = [
    "-C",
    "linker-flavor=bpf",
    "-C",
    "relocation-model=static",
    // Beside the target's own: crates of the ecosystem recognise the chain by this name.
    "--cfg",
    "target_os=\"solana\"",
    "-A",
    "explicit_builtin_cfgs_in_flags",
    // There is one thread, so atomics become plain loads and stores.
    "-C",
    "passes=lower-atomic",
    "-C",
    "target-feature=+allows-misaligned-mem-access",
    // Older formats have gaps between stack frames, which the linker's handling of more than five arguments misses.
    "-C",
    "link-arg=--arch=v3",
    "-C",
    "link-arg=--llvm-args=--bpf-stack-size=4096",
    // The loader knows no indirect jumps, so `match` must never become a jump table.
    "-C",
    "link-arg=--llvm-args=--bpf-min-jump-table-entries=100000",
];

/// Everything set up.
#[derive(Debug)]
pub struct Toolchain {
    library: Library,
    linker: PathBuf,
    recipe: String,
}

impl Toolchain {
    /// Installs, downloads and builds whatever of the parts is missing.
    pub fn set_up(repo: &Repo, cache: &Cache) -> Result<Self> {
        require_debian()?;
        packages::require(repo, &PACKAGES, "Building on-chain programs")?;
        let compiler = capture(command(repo, RUSTC).arg("-vV"))?;
        let release = release(&compiler).context("rustc -vV names no release")?;
        let library = Library::set_up(repo, cache, release, &compiler)?;
        let llvm = Llvm::set_up(repo, cache)?;
        let linker = linker::set_up(repo, cache, &llvm)?;
        let recipe = library.recipe()? + &linker::recipe();
        Ok(Self {
            library,
            linker,
            recipe,
        })
    }

    /// Builds one program and returns the compiled file.
    pub fn build(&self, repo: &Repo, step: &Step, program: &ProgramCrate) -> Result<PathBuf> {
        let target = repo.target().join("sbf");
        self.clean_after_change(&target)?;
        let mut build = self.cargo(repo);
        build.args(["build", "--release", "--locked", "--manifest-path"]);
        build.arg(&program.manifest).arg("--target");
        build.arg(self.library.target_file());
        build.args(["-Zbuild-std=core,alloc,std", "-Zjson-target-spec"]);
        build.arg("-Zbuild-std-features=compiler-builtins-mem");
        step.run(build.env("CARGO_TARGET_DIR", &target))?;
        let output = target.join(self.library.target_name()).join("release");
        Ok(output.join(format!("lib{}.so", program.library)))
    }

    fn cargo(&self, repo: &Repo) -> Command {
        let mut cargo = command(repo, CARGO);
        let linker = format!("linker={}", self.linker.display());
        let flags = ["-C", &linker].into_iter().chain(FLAGS);
        let flags: Vec<&str> = flags.collect();
        // Separated by a character that no path holds, unlike the space of RUSTFLAGS.
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        cargo.env("RUSTC", RUSTC).env("RUSTC_BOOTSTRAP", "1");
        cargo.env("__CARGO_TESTS_ONLY_SRC_ROOT", self.library.sources());
        // The user's own settings are for native builds.
        for name in [
            "RUSTFLAGS",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "CARGO_BUILD_TARGET",
            // It would give the guard the features of programs that use it as a library.
            "CARGO_RESOLVER_FEATURE_UNIFICATION",
        ] {
            cargo.env_remove(name);
        }
        cargo
    }

    /// Starts from nothing when the library, the target or the linker changed: cargo watches none of them.
    fn clean_after_change(&self, target: &Path) -> Result<()> {
        let stamp = target.join("recipe");
        if fs::read_to_string(&stamp).is_ok_and(|text| text == self.recipe) {
            return Ok(());
        }
        remove(target)?;
        fs::create_dir_all(target)
            .and_then(|()| fs::write(&stamp, &self.recipe))
            .with_context(|| format!("cannot write {}", stamp.display()))
    }
}

fn require_debian() -> Result<()> {
    let is_known_machine = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if is_known_machine && debian_release().as_deref() == Some(DEBIAN) {
        return Ok(());
    }
    bail!(
        "on-chain programs need one of these:\n\
         - `cargo build-sbf` of the Solana command-line tools on PATH (any system), or\n\
         - Debian 12 on x86-64, where everything needed is set up from its packages and the Rust crate registry.\n\
         This machine has neither."
    )
}

/// The version in `rustc -vV`, for example `1.96.0`.
fn release(version: &str) -> Option<&str> {
    version
        .lines()
        .find_map(|line| line.strip_prefix("release: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_release() {
        let text = "rustc 1.96.0 (ac68faa20 2026-05-25)\nhost: x86_64-unknown-linux-gnu\nrelease: 1.96.0\n";
        assert_eq!(release(text), Some("1.96.0"));
        assert_eq!(release("nothing"), None);
    }
}

//! `solana-test-validator` of the right version, built by the rustc that builds the Geyser plugin.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::cache::Cache;
use crate::command::{capture, command, is_executable, on_path};
use crate::compiler;
use crate::output::say;
use crate::packages::{self, Package};
use crate::registry_tool::RegistryTool;
use crate::repo::Repo;

/// The line that the Geyser plugin's interface and the root workspace's Solana crates are held at.
const VERSION: &str = "4.2.2";

const BINARY: &str = "solana-test-validator";

const VALIDATOR: RegistryTool = RegistryTool {
    package: "agave-validator",
    version: VERSION,
    binary: BINARY,
    why: "tests and the local chain run a real validator; none that fits was found on this machine",
    takes: "35 CPU-minutes (an interrupted build goes on where it stopped)",
    optimized: true,
};

/// Names a validator to use and no other. One that does not fit is an error then, instead of being passed over.
const CHOICE: &str = "SLUICE_VALIDATOR";

/// RocksDB and its bindings, the protobuf compiler, USB and TLS libraries.
const PACKAGES: [Package; 9] = [
    Package::or_tool("g++", "g++"),
    Package::or_tool("clang", "clang"),
    Package::named("libclang-dev"),
    Package::or_tool("protobuf-compiler", "protoc"),
    Package::named("libudev-dev"),
    Package::or_tool("pkg-config", "pkg-config"),
    Package::named("libssl-dev"),
    Package::or_tool("cmake", "cmake"),
    Package::or_tool("make", "make"),
];

/// Why a validator cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    DoesNotRun,
    Version(String),
    Compiler { found: String, pinned: String },
    NoCompiler,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotRun => write!(f, "it does not run here"),
            Self::Version(found) => write!(f, "it is version {found}, needed is {VERSION}"),
            Self::Compiler { found, pinned } => {
                write!(f, "it was built by rustc {found}, needed is {pinned}")
            }
            Self::NoCompiler => write!(f, "it does not say which rustc built it"),
        }
    }
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Search {
    pub fitting: Option<PathBuf>,
    pub passed_over: Vec<(PathBuf, Unfit)>,
}

/// Returns a validator that fits, built from nothing if none is there.
pub fn set_up(repo: &Repo, cache: &Cache) -> Result<PathBuf> {
    let search = search(repo, cache)?;
    for (path, unfit) in &search.passed_over {
        say!("==> Passing over {}: {unfit}", path.display());
    }
    match search.fitting {
        Some(path) => Ok(path),
        None => build(repo, cache),
    }
}

/// System packages that are due because a validator will have to be built.
pub fn packages_needed(repo: &Repo, cache: &Cache) -> Result<&'static [Package]> {
    let is_there = search(repo, cache)?.fitting.is_some();
    Ok(if is_there { &[] } else { &PACKAGES })
}

/// Looks at every place where a validator may be, best first, and stops at the first that fits.
pub fn search(repo: &Repo, cache: &Cache) -> Result<Search> {
    let pinned = compiler::pinned_commit(repo)?;
    if let Some(chosen) = env::var_os(CHOICE).filter(|value| !value.is_empty()) {
        let chosen = std::path::absolute(chosen)?;
        if let Err(unfit) = judge(repo, &chosen, &pinned) {
            bail!(
                "{CHOICE} names {}, but {unfit}\n{}",
                chosen.display(),
                explanation(&unfit)
            );
        }
        return Ok(Search {
            fitting: Some(chosen),
            ..Search::default()
        });
    }
    let mut search = Search::default();
    for candidate in candidates(repo, cache) {
        match judge(repo, &candidate, &pinned) {
            Ok(()) => {
                search.fitting = Some(candidate);
                break;
            }
            Err(unfit) => search.passed_over.push((candidate, unfit)),
        }
    }
    Ok(search)
}

/// Why the difference matters and what to do about it.
pub fn explanation(unfit: &Unfit) -> &'static str {
    match unfit {
        Unfit::Compiler { .. } | Unfit::NoCompiler => {
            "\nThe validator loads the Geyser plugin as a library and calls Rust functions in it. Rust's calling\n\
             convention and layouts differ between compilers, so a plugin of another rustc crashes the validator or\n\
             corrupts its memory.\n\n\
             Remedy: `cargo xtask build validator` builds one with the pinned rustc (about 35 CPU-minutes, once)."
        }
        Unfit::DoesNotRun | Unfit::Version(_) => {
            "\nRemedy: `cargo xtask build validator` builds the needed one (about 35 CPU-minutes, once)."
        }
    }
}

fn candidates(repo: &Repo, cache: &Cache) -> Vec<PathBuf> {
    let beside = repo.root().parent();
    let places = [
        on_path(BINARY),
        beside.map(|folder| folder.join("shared/bin").join(BINARY)),
        Some(VALIDATOR.path(cache)),
    ];
    let present = |path: &PathBuf| is_executable(path);
    places.into_iter().flatten().filter(present).collect()
}

fn judge(repo: &Repo, path: &Path, pinned: &str) -> Result<(), Unfit> {
    let said = capture(command(repo, path).arg("--version")).map_err(|_| Unfit::DoesNotRun)?;
    let version = said.split_whitespace().nth(1).unwrap_or_default();
    if version != VERSION {
        return Err(Unfit::Version(version.to_owned()));
    }
    let binary = fs::read(path).map_err(|_| Unfit::DoesNotRun)?;
    match compiler::commit_in(&binary) {
        Some(found) if found == pinned => Ok(()),
        Some(found) => Err(Unfit::Compiler {
            found: found.to_owned(),
            pinned: pinned.to_owned(),
        }),
        None => Err(Unfit::NoCompiler),
    }
}

fn build(repo: &Repo, cache: &Cache) -> Result<PathBuf> {
    packages::require(repo, &PACKAGES, "Building solana-test-validator")?;
    let pinned = compiler::pinned_commit(repo)?;
    let path = VALIDATOR.install(repo, cache, &pinned)?;
    match judge(repo, &path, &pinned) {
        Ok(()) => Ok(path),
        Err(unfit) => bail!("the validator just built cannot be used: {unfit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const PINNED: &str = "59807616e1fa2540724bfbac14d7976d7e4a3860";
    const OTHER: &str = "ac68faa20c58cbccd01ee7208bf3b6e93a7d7f96";

    /// A script that answers `--version` and carries a compiler's path as a binary would.
    fn judged(name: &str, version: &str, compiler: &str) -> Result<(), Unfit> {
        let folder = env::temp_dir().join(format!("xtask-validator-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder is writable");
        let path = folder.join(BINARY);
        let text = format!("#!/bin/sh\necho '{BINARY} {version} (src:0)'\n# {compiler}\n");
        fs::write(&path, text).expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        let verdict = judge(&Repo::at(folder.clone()), &path, PINNED);
        fs::remove_dir_all(folder).expect("ours");
        verdict
    }

    #[test]
    fn accepts_the_right_version_and_compiler() {
        let own = format!("/rustc/{PINNED}/library/core");
        assert_eq!(judged("fits", VERSION, &own), Ok(()));
    }

    #[test]
    fn names_both_compilers_when_they_differ() {
        let other = format!("/rustc/{OTHER}/library/core");
        let unfit = judged("other", VERSION, &other).expect_err("another compiler");
        let text = unfit.to_string();
        assert!(text.contains(PINNED) && text.contains(OTHER), "{text}");
    }

    #[test]
    fn refuses_another_version_and_a_binary_without_a_compiler() {
        let other = judged("version", "4.3.0", "");
        assert_eq!(other, Err(Unfit::Version("4.3.0".into())));
        assert_eq!(judged("bare", VERSION, ""), Err(Unfit::NoCompiler));
    }

    #[test]
    fn refuses_what_does_not_run() {
        let repo = Repo::at("/".into());
        let gone = judge(&repo, Path::new("/no/such/validator"), PINNED);
        assert_eq!(gone, Err(Unfit::DoesNotRun));
    }
}

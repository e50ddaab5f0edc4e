//! The program: built so that its bytes do not depend on the folder, and compared with those from another one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::{scratch, time};
use crate::cache::remove;
use crate::command::{capture, cargo, command};
use crate::output::say;
use crate::repo::Repo;
use crate::step::Step;

/// What stands in the program for the folder of the sources, that of the packages, and that of the compiler.
const SOURCES: &str = "/sluice";
const PACKAGES: &str = "/packages";
const COMPILER: &str = "/rust";

/// Where a build takes place.
pub struct Place {
    sources: PathBuf,
    target: PathBuf,
}

impl Place {
    /// This checkout. The output lies apart from that of other builds, whose flags differ.
    pub fn here(repo: &Repo) -> Self {
        Self {
            sources: repo.root().to_path_buf(),
            target: scratch(repo).join("here"),
        }
    }
}

/// Builds the program for publishing.
pub fn build(repo: &Repo, place: &Place) -> Result<PathBuf> {
    let step = Step::begin(
        repo,
        "release-build",
        &format!(
            "Building sluice for publishing in {}",
            place.sources.display()
        ),
        "optimized, and without a trace of the folders that it was built in",
        "10 minutes from nothing on two cores",
    )?;
    step.explain();
    let packages = packages_folder()?;
    let sysroot = capture(command(repo, "rustc").args(["--print", "sysroot"]))?;
    let sysroot = PathBuf::from(sysroot.trim());
    let target = std::path::absolute(&place.target)?;
    // The last that fits counts, to both compilers: what lies inside another folder stands behind it.
    let folders = [
        (place.sources.as_path(), SOURCES),
        (target.as_path(), "/target"),
        (packages.as_path(), PACKAGES),
        (sysroot.as_path(), COMPILER),
    ];
    let map = |option: &str| folders.map(|(from, to)| format!("{option}={}={to}", from.display()));
    let mut build = cargo(repo);
    build.current_dir(&place.sources);
    build.args([
        "build",
        "--release",
        "--locked",
        "--package",
        "sluice",
        "--bin",
        "sluice",
    ]);
    build.env("CARGO_TARGET_DIR", &target);
    build.env(
        "CARGO_ENCODED_RUSTFLAGS",
        map("--remap-path-prefix").join("\u{1f}"),
    );
    let flags = map("-ffile-prefix-map").join(" ");
    build.env("CFLAGS", &flags).env("CXXFLAGS", &flags);
    build.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    build.env("CARGO_INCREMENTAL", "0");
    build.env("SOURCE_DATE_EPOCH", time(repo)?);
    step.run(&mut build)?;
    step.done();
    let program = target.join("release/sluice");
    let bytes = fs::read(&program).context("the build left no program")?;
    for (folder, _) in folders {
        let folder = folder.display().to_string();
        ensure!(
            !contains(&bytes, folder.as_bytes()),
            "the program names the folder {folder} of this machine, and is another one elsewhere"
        );
    }
    Ok(program)
}

/// Builds once more, from a copy of the sources in another folder, and fails where the bytes differ.
pub fn compare(repo: &Repo, program: &Path) -> Result<()> {
    let place = Place {
        sources: scratch(repo).join("another-folder"),
        target: scratch(repo).join("another-output/below"),
    };
    remove(&place.sources)?;
    export(repo, &place.sources)?;
    let other = build(repo, &place)?;
    let is_same = fs::read(program)? == fs::read(&other)?;
    ensure!(
        is_same,
        "{} and {} differ: the build is not reproducible",
        program.display(),
        other.display()
    );
    say!("==> The same bytes from another folder");
    remove(&place.sources)?;
    remove(&scratch(repo).join("another-output"))
}

/// Copies the committed sources.
fn export(repo: &Repo, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let archive = folder.with_extension("tar");
    let mut pack = command(repo, "git");
    pack.args(["archive", "--format=tar", "--output"]);
    capture(pack.arg(&archive).arg("HEAD"))?;
    let mut unpack = command(repo, "tar");
    capture(unpack.arg("-xf").arg(&archive).arg("-C").arg(folder))?;
    remove(&archive)
}

/// A copy of a program without what only a debugger reads.
pub fn stripped(repo: &Repo, program: &Path, folder: &Path) -> Result<PathBuf> {
    let copy = folder.join("sluice");
    let mut strip = command(repo, "strip");
    capture(strip.arg("-o").arg(&copy).arg(program))?;
    Ok(copy)
}

/// Where cargo keeps the packages of the registry.
fn packages_folder() -> Result<PathBuf> {
    if let Some(home) = env::var_os("CARGO_HOME") {
        return Ok(PathBuf::from(home));
    }
    let home = env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?;
    Ok(PathBuf::from(home).join(".cargo"))
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == wanted[0]) {
        let at = from + at;
        if bytes[at..].starts_with(wanted) {
            return true;
        }
        from = at + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_found_wherever_it_stands() {
        assert!(contains(b"aa/src/main", b"/src"));
        assert!(contains(b"//src", b"/src"));
        assert!(!contains(b"/sr", b"/src"));
        assert!(!contains(b"", b"/src"));
    }
}

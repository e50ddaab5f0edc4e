//! Python: the interpreter of the machine, and environments with the packages of a lock file.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{installed, once, version};
use crate::command::{capture, command, is_executable};
use crate::packages::Package;
use crate::repo::Repo;
use crate::step::Step;

/// What the lock files were made for; also Debian 12's own.
const OLDEST: [u32; 3] = [3, 11, 0];

/// Names that a fitting interpreter may have, the machine's own choice first.
const NAMES: [&str; 4] = ["python3", "python3.13", "python3.12", "python3.11"];

/// The interpreter, and what makes its environments, which Debian packs apart.
const PACKAGES: [Package; 2] = [
    Package::at_least("python3", "3.11"),
    Package::at_least("python3-venv", "3.11"),
];

/// An interpreter that can make environments.
pub struct Python {
    path: PathBuf,
    /// All that it says of its version, compiler included.
    version: String,
}

pub fn packages_needed(repo: &Repo) -> &'static [Package] {
    if search(repo).is_some() {
        &[]
    } else {
        &PACKAGES
    }
}

impl Python {
    pub fn find(repo: &Repo) -> Result<Self> {
        let Some(python) = search(repo) else {
            let [major, minor, _] = OLDEST;
            bail!(
                "no Python from {major}.{minor} on with `venv` and `ensurepip` was found on PATH"
            );
        };
        Ok(python)
    }

    /// An environment with the packages of `requirements.txt` in a folder of tests. Returns its interpreter.
    pub fn environment(&self, repo: &Repo, sources: &Path) -> Result<PathBuf> {
        let lock = sources.join("requirements.txt");
        let name = sources
            .file_name()
            .and_then(OsStr::to_str)
            .context("a folder of tests has a name")?;
        let packages =
            fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
        let recipe = format!("{}\n{}\n{packages}", self.path.display(), self.version);
        let folder = installed(repo).join(name);
        let interpreter = folder.join("bin/python3");
        once(&folder, &recipe, || {
            let step = Step::begin(
                repo,
                &format!("clients-{name}"),
                &format!("Installing the Python packages of {}", repo.shown(&lock)),
                "tests run them against the service; only files of the committed hashes are taken",
                "15 s, mostly the download, once",
            )?;
            let mut make = command(repo, &self.path);
            step.run(make.args(["-m", "venv"]).arg(&folder))?;
            let mut install = command(repo, &interpreter);
            install.args([
                "-m",
                "pip",
                "install",
                "--no-input",
                "--disable-pip-version-check",
            ]);
            // Nothing is compiled here: a package that has no wheel for this machine stops the installation.
            install.args([
                "--require-hashes",
                "--only-binary",
                ":all:",
                "--requirement",
            ]);
            step.run(install.arg(&lock))?;
            step.done();
            Ok(())
        })?;
        Ok(interpreter)
    }
}

fn search(repo: &Repo) -> Option<Python> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .filter(|candidate| is_executable(candidate))
        .find_map(|candidate| judge(repo, &candidate))
}

/// The interpreter itself, behind whatever script or link is on PATH, when it fits.
fn judge(repo: &Repo, candidate: &Path) -> Option<Python> {
    const ASK: &str =
        "import sys, venv, ensurepip; print(sys.executable); print(' '.join(sys.version.split()))";
    let answer = capture(command(repo, candidate).args(["-c", ASK])).ok()?;
    let (path, found) = answer.trim_end().split_once('\n')?;
    (version(found)? >= OLDEST).then(|| Python {
        path: PathBuf::from(path),
        version: found.to_owned(),
    })
}

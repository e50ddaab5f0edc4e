//! apt with a state of its own: packages of any Debian suite, downloaded and unpacked, without installing anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::apt_sources;
use crate::cache::remove;
use crate::command::command;
use crate::packages::debian_release;
use crate::repo::Repo;
use crate::step::Step;

/// The keys that Debian 12 trusts; sid is signed by them too.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Downloads packages of a suite and unpacks their files below `root`. `folder` is for what apt keeps meanwhile.
pub fn unpack(
    repo: &Repo,
    step: &Step,
    suite: &str,
    packages: &[&str],
    folder: &Path,
    root: &Path,
) -> Result<()> {
    let apt = PrivateApt::create(repo, suite, &folder.join("apt"))?;
    step.run(apt.command("apt-get").arg("update"))?;
    step.run(apt.command("apt-get").arg("download").args(packages))?;
    for deb in fs::read_dir(&apt.debs)? {
        let mut unpack = command(repo, "dpkg");
        step.run(unpack.arg("-x").arg(deb?.path()).arg(root))?;
    }
    remove(&apt.folder)
}

/// apt with its own list of sources, its own state and nothing installed, so that the machine's stay untouched.
struct PrivateApt<'a> {
    repo: &'a Repo,
    folder: PathBuf,
    debs: PathBuf,
}

impl<'a> PrivateApt<'a> {
    fn create(repo: &'a Repo, suite: &str, folder: &Path) -> Result<Self> {
        let debs = folder.join("debs");
        for needed in ["state/lists/partial", "cache/archives/partial", "debs"] {
            fs::create_dir_all(folder.join(needed))?;
        }
        let mirror = mirror()?;
        let source = format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
        fs::write(folder.join("sources.list"), source)?;
        fs::write(folder.join("status"), "")?;
        Ok(Self {
            repo,
            folder: folder.to_path_buf(),
            debs,
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut apt = command(self.repo, program);
        let mut option = |name: &str, value: &str| {
            apt.arg("-o").arg(format!("{name}={value}"));
        };
        let path = |relative: &str| self.folder.join(relative).display().to_string();
        option("Dir::Etc::sourcelist", &path("sources.list"));
        option("Dir::Etc::sourceparts", "/dev/null");
        option("Dir::Etc::preferences", "/dev/null");
        option("Dir::Etc::preferencesparts", "/dev/null");
        option("Dir::State", &path("state"));
        option("Dir::State::status", &path("status"));
        option("Dir::Cache", &path("cache"));
        option("Acquire::Languages", "none");
        // Descriptions for shops of software, larger than the list of packages.
        option(
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled",
            "false",
        );
        // Run by root, apt would drop to a user that cannot enter a home folder.
        option("APT::Sandbox::User", "root");
        apt.current_dir(&self.debs);
        apt
    }
}

fn mirror() -> Result<String> {
    let release = debian_release().context("this machine is not a Debian")?;
    let sources = apt_sources::read_sources(Path::new("/etc/apt"))?;
    let found = apt_sources::mirror(&sources, &release);
    found.map(str::to_owned).with_context(|| {
        format!(
            "no package source for `{release} main` found in /etc/apt/sources.list or \
             /etc/apt/sources.list.d: the packages come from the same mirror, so it must be named there"
        )
    })
}

//! Debian packages: which are missing, and how they are installed.

use std::process::Command;

use anyhow::{Result, bail};

use crate::command::{capture, command, on_path};
use crate::repo::Repo;
use crate::step::Step;

/// A package that a build needs.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    pub name: &'static str,
    /// A program that makes the package unnecessary when it is on PATH, no matter who installed it.
    pub tool: Option<&'static str>,
    /// Oldest version that will do, as Debian numbers it.
    pub at_least: Option<&'static str>,
    /// What must be done before the package is installed.
    pub prepare: Option<fn() -> Result<()>>,
}

impl Package {
    pub const fn named(name: &'static str) -> Self {
        Self {
            name,
            tool: None,
            at_least: None,
            prepare: None,
        }
    }

    pub const fn or_tool(name: &'static str, tool: &'static str) -> Self {
        Self {
            tool: Some(tool),
            ..Self::named(name)
        }
    }

    pub const fn at_least(name: &'static str, version: &'static str) -> Self {
        Self {
            at_least: Some(version),
            ..Self::named(name)
        }
    }
}

/// Makes sure that all packages are installed: installs what is missing when run by root, else says how and stops.
pub fn require(repo: &Repo, packages: &[Package], what_for: &str) -> Result<()> {
    let missing = missing(repo, packages);
    if missing.is_empty() {
        return Ok(());
    }
    let names = names(&missing).join(" ");
    if on_path("apt-get").is_none() {
        bail!(
            "{what_for} needs these Debian packages, or what your system calls them: {names}\n\
             (found neither them nor `apt-get` to install them with)"
        );
    }
    let line = format!("apt-get update && apt-get install -y --no-install-recommends {names}");
    if !is_root(repo) {
        bail!(
            "{what_for} needs system packages. Run this line, then the same command again:\n\n    \
             sudo sh -c '{line}'\n"
        );
    }
    install(repo, &missing, what_for)?;
    let still = self::missing(repo, packages);
    if still.is_empty() {
        return Ok(());
    }
    bail!(
        "apt-get installed what it has, but these are still missing or too old: {}",
        self::names(&still).join(" ")
    )
}

/// The Debian release this machine runs, `bookworm` for example, if it is a Debian at all.
pub fn debian_release() -> Option<String> {
    release_of(&std::fs::read_to_string("/etc/os-release").ok()?)
}

fn release_of(os_release: &str) -> Option<String> {
    let value = |key: &str| {
        let found = os_release.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name == key).then_some(value)
        });
        found.map(|value| value.trim_matches('"').to_owned())
    };
    (value("ID")? == "debian").then(|| value("VERSION_CODENAME"))?
}

fn missing(repo: &Repo, packages: &[Package]) -> Vec<Package> {
    let packages = packages.iter().copied();
    packages
        .filter(|package| !is_there(repo, package))
        .collect()
}

fn is_there(repo: &Repo, package: &Package) -> bool {
    if package.tool.is_some_and(|tool| on_path(tool).is_some()) {
        return true;
    }
    let mut query = command(repo, "dpkg-query");
    query.args([
        "--show",
        "--showformat=${db:Status-Status} ${Version}",
        package.name,
    ]);
    let Ok(answer) = capture(&mut query) else {
        return false;
    };
    let Some(version) = answer.trim().strip_prefix("installed ") else {
        return false;
    };
    package.at_least.is_none_or(|least| {
        let mut compare = command(repo, "dpkg");
        compare.args(["--compare-versions", version, "ge", least]);
        compare.status().is_ok_and(|status| status.success())
    })
}

fn names(packages: &[Package]) -> Vec<&'static str> {
    packages.iter().map(|package| package.name).collect()
}

fn install(repo: &Repo, missing: &[Package], what_for: &str) -> Result<()> {
    let names = names(missing);
    let what = format!("Installing Debian packages: {}", names.join(" "));
    let why = format!("{what_for} needs them");
    let takes = "a minute, mostly the download";
    let step = Step::begin(repo, "packages", &what, &why, takes)?;
    step.explain();
    for prepare in missing.iter().filter_map(|package| package.prepare) {
        prepare()?;
    }
    // The lists are renewed always: old ones may know only older versions than needed, or files that are gone.
    step.run(apt(repo).arg("update"))?;
    // Without permission to remove, so that a conflict with what the user has installed stops here, with apt's words.
    let flags = ["install", "-y", "--no-install-recommends", "--no-remove"];
    step.run(apt(repo).args(flags).args(names))?;
    step.done();
    Ok(())
}

fn apt(repo: &Repo) -> Command {
    let mut apt = command(repo, "apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    // Another apt, an automatic update for example, is waited for instead of failed on. In seconds.
    apt.args(["-o", "DPkg::Lock::Timeout=300"]);
    // A setting that is there already is kept; there is no person at hand to ask.
    apt.args(["-o", "DPkg::Options::=--force-confold"]);
    apt
}

fn is_root(repo: &Repo) -> bool {
    capture(command(repo, "id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_release_of_a_debian() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(release_of(text).as_deref(), Some("bookworm"));
    }

    #[test]
    fn another_distribution_is_no_debian_release() {
        let text = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n";
        assert_eq!(release_of(text), None);
        assert_eq!(release_of(""), None);
    }

    #[test]
    fn a_tool_on_path_makes_its_package_unnecessary() {
        let repo = Repo::at("/".into());
        let there = Package::or_tool("no-such-package", "sh");
        let gone = Package::or_tool("no-such-package", "no-such-tool");
        let missing = missing(&repo, &[there, gone]);
        assert_eq!(names(&missing), ["no-such-package"]);
    }
}

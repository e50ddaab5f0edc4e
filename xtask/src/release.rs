//! `release`: everything that is published, under `target/release-artifacts`.
//!
//! The program, the same bytes from any folder; a Debian package and a container image of it; the bill of what is in it, with
//! the licences; the clients' packages, the Kubernetes manifests, alerts, dashboard, compose and container file. Package and image
//! are tried as their users run them.

mod bill;
mod binary;
mod debian;
mod deploy;
mod files;
mod image;
mod licences;
mod manifests;
mod parts;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cache::remove;
use crate::clients;
use crate::clients::python::Python;
use crate::command::{capture, command};
use crate::deployment;
use crate::output::say;
use crate::packages::{self, Package};
use crate::repo::Repo;
use crate::step::Step;

use self::parts::Parts;

/// What makes package and image, and judges the package.
const PACKAGES: [Package; 8] = [
    Package::or_tool("lintian", "lintian"),
    Package::or_tool("umoci", "umoci"),
    Package::or_tool("skopeo", "skopeo"),
    Package::or_tool("dpkg-dev", "dpkg-shlibdeps"),
    Package::or_tool("jq", "jq"),
    Package::or_tool("curl", "curl"),
    Package::or_tool("iproute2", "ip"),
    Package::or_tool("procps", "pgrep"),
];

/// What judges a package and tries it, beside what builds and tests need.
const TRIAL_PACKAGES: [Package; 5] = [
    Package::or_tool("lintian", "lintian"),
    Package::or_tool("dpkg-dev", "dpkg-shlibdeps"),
    Package::or_tool("curl", "curl"),
    Package::or_tool("iproute2", "ip"),
    Package::or_tool("procps", "pgrep"),
];

/// System packages that the checks within `cargo xtask test` need.
pub const fn packages_needed() -> &'static [Package] {
    &TRIAL_PACKAGES
}

/// Makes everything anew. `compare` builds a second time, from another folder, and compares the bytes.
pub fn run(repo: &Repo, compare: bool) -> Result<()> {
    packages::require(repo, &PACKAGES, "A release")?;
    let artifacts = artifacts(repo);
    remove(&artifacts)?;
    fs::create_dir_all(&artifacts)
        .with_context(|| format!("cannot create {}", artifacts.display()))?;
    let parts = Parts::read(repo)?;
    let papers = papers(repo, &parts, &artifacts)?;
    let program = binary::build(repo, &binary::Place::here(repo))?;
    if compare {
        binary::compare(repo, &program)?;
    }
    fs::copy(&program, artifacts.join("sluice")).context("cannot copy the program")?;
    let version = &parts.version;
    let package = debian::build(repo, &program, version, &papers, &artifacts)?;
    debian::lint(repo, &package)?;
    let later = debian::build(
        repo,
        &program,
        &format!("{version}+trial"),
        &papers,
        &scratch(repo),
    )?;
    trial::package(repo, &package, &later)?;
    image::build(repo, &program, version, &artifacts)?;
    manifests::pack(repo, version, &time(repo)?, &artifacts)?;
    deployment::judge_compose_file(repo, &deploy::copy(repo, version, &artifacts)?)?;
    clients::pack(repo, &artifacts)?;
    sums(repo, &artifacts)?;
    say!("==> Wrote {}", repo.shown(&artifacts));
    Ok(())
}

/// Checks what needs no release build: the bill by its schema, that every part has a licence, the compose file as it is published,
/// and a package with the program as the tests have it, by Debian's rules and by its use.
pub fn check(repo: &Repo) -> Result<()> {
    // Not emptied: what a release was built with lies there too.
    let scratch = scratch(repo);
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let parts = Parts::read(repo)?;
    let papers = papers(repo, &parts, &scratch)?;
    deployment::judge_compose_file(repo, &deploy::copy(repo, &parts.version, &scratch)?)?;
    let program = binary::stripped(repo, &repo.target().join("debug/sluice"), &scratch)?;
    let first = debian::build(repo, &program, &parts.version, &papers, &scratch)?;
    debian::lint(repo, &first)?;
    let version = format!("{}+trial", parts.version);
    let second = debian::build(repo, &program, &version, &papers, &scratch)?;
    trial::package(repo, &first, &second)
}

/// What is said of the program, beside it.
struct Papers {
    licences: PathBuf,
}

fn papers(repo: &Repo, parts: &Parts, folder: &Path) -> Result<Papers> {
    let step = Step::begin(
        repo,
        "papers",
        "Writing the bill of materials and the licences",
        "who runs the program may ask what is in it, and under which terms",
        "5 s",
    )?;
    let licences = folder.join("licences.txt");
    write(&licences, &licences::text(parts)?)?;
    let bill = folder.join("sluice.cdx.json");
    write(&bill, &bill::json(parts))?;
    let checks = deployment::folder(repo).join("checks");
    let interpreter = Python::find(repo)?.environment(repo, &checks)?;
    step.run(
        command(repo, interpreter)
            .arg(checks.join("bill.py"))
            .arg(&bill),
    )?;
    step.done();
    Ok(Papers { licences })
}

fn sums(repo: &Repo, artifacts: &Path) -> Result<()> {
    let mut names: Vec<String> = fs::read_dir(artifacts)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let mut sums = command(repo, "sha256sum");
    let text = capture(sums.current_dir(artifacts).args(names))?;
    say!("{}", text.trim_end());
    write(&artifacts.join("SHA256SUMS"), &text)
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn artifacts(repo: &Repo) -> PathBuf {
    repo.target().join("release-artifacts")
}

/// For what is made on the way and not published.
fn scratch(repo: &Repo) -> PathBuf {
    repo.target().join("release-scratch")
}

/// The time that everything made carries: that of the commit, so that it is the same whenever it is made.
fn time(repo: &Repo) -> Result<String> {
    let mut git = command(repo, "git");
    let text = capture(git.args(["log", "-1", "--format=%ct"]))?;
    Ok(text.trim().to_owned())
}

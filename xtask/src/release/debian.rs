//! Debian package of the program: with its unit, its user and an example of everything that an operator sets up beside it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Papers, files::install, scratch, time, write};
use crate::cache::remove;
use crate::command::{capture, command};
use crate::deployment;
use crate::repo::Repo;
use crate::step::Step;

const FOLDER: u32 = 0o755;
const PROGRAM: u32 = 0o755;
const FILE: u32 = 0o644;

/// Files of the repository, and where the package puts them.
const FILES: [(&str, &str); 6] = [
    (
        "deploy/systemd/sluice.service",
        "usr/lib/systemd/system/sluice.service",
    ),
    (
        "deploy/systemd/sluice.sysusers",
        "usr/lib/sysusers.d/sluice.conf",
    ),
    ("deploy/debian/copyright", "usr/share/doc/sluice/copyright"),
    (
        "deploy/debian/README.Debian",
        "usr/share/doc/sluice/README.Debian",
    ),
    ("docs/operations.md", "usr/share/doc/sluice/operations.md"),
    (
        "deploy/debian/lintian-overrides",
        "usr/share/lintian/overrides/sluice",
    ),
];

/// Files that are examples, below `usr/share/doc/sluice/examples`.
const EXAMPLES: [(&str, &str); 3] = [
    ("sluice.example.toml", "sluice.example.toml"),
    ("deploy/prometheus/alerts.yaml", "alerts.yaml"),
    ("deploy/grafana/sluice.json", "grafana.json"),
];

/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Files below `deploy/` of which the package is made.
#[cfg(test)]
pub(super) fn sources() -> Vec<String> {
    let copied = FILES.iter().chain(&EXAMPLES);
    let copied = copied.filter_map(|(from, _)| from.strip_prefix("deploy/").map(str::to_owned));
    let control = ["control"].iter().chain(&SCRIPTS);
    copied
        .chain(control.map(|name| format!("debian/{name}")))
        .collect()
}

/// Builds the package into `folder`.
pub fn build(
    repo: &Repo,
    program: &Path,
    version: &str,
    papers: &Papers,
    folder: &Path,
) -> Result<PathBuf> {
    let step = Step::begin(
        repo,
        "debian",
        &format!("Building the Debian package, version {version}"),
        "program, unit, user and licences in one file",
        "20 s",
    )?;
    let root = scratch(repo).join("debian");
    remove(&root)?;
    install(program, &root.join("usr/bin/sluice"), PROGRAM)?;
    for (from, to) in FILES {
        install(&repo.root().join(from), &root.join(to), FILE)?;
    }
    let documents = root.join("usr/share/doc/sluice");
    for (from, to) in EXAMPLES {
        install(
            &repo.root().join(from),
            &documents.join("examples").join(to),
            FILE,
        )?;
    }
    fs::create_dir_all(root.join("etc/sluice"))?;
    compressed(repo, &papers.licences, &documents.join("licences.txt.gz"))?;
    let history = scratch(repo).join("changelog");
    write(&history, &changelog(repo, version)?)?;
    compressed(repo, &history, &documents.join("changelog.gz"))?;
    let control = root.join("DEBIAN");
    for name in SCRIPTS {
        let script = deployment::folder(repo).join("debian").join(name);
        install(&script, &control.join(name), PROGRAM)?;
    }
    write(
        &control.join("control"),
        &description(repo, &root, version)?,
    )?;
    folders_are_open(&root)?;
    let package = folder.join(format!("sluice_{version}_{}.deb", architecture(repo)?));
    let mut build = command(repo, "dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "-z1", "--build"]);
    build.env("SOURCE_DATE_EPOCH", time(repo)?);
    step.run(build.arg(&root).arg(&package))?;
    step.done();
    Ok(package)
}

/// Fails on the first error that Debian's own judge finds.
pub fn lint(repo: &Repo, package: &Path) -> Result<()> {
    let step = Step::begin(
        repo,
        "lintian",
        "Judging the Debian package",
        "Debian's own rules for what a package may be",
        "30 s",
    )?;
    let mut lint = command(repo, "lintian");
    lint.args(["--fail-on", "error,warning", "--allow-root", "--no-cfg"]);
    step.run(lint.arg(package))?;
    step.done();
    Ok(())
}

/// Without name and time, so that the same text gives the same bytes.
fn compressed(repo: &Repo, from: &Path, to: &Path) -> Result<()> {
    let mut gzip = command(repo, "gzip");
    let output = gzip
        .args(["--best", "--no-name", "--stdout"])
        .arg(from)
        .output()
        .context("cannot start gzip")?;
    if !output.status.success() {
        bail!("gzip cannot compress {}", from.display());
    }
    fs::write(to, output.stdout).with_context(|| format!("cannot write {}", to.display()))
}

fn changelog(repo: &Repo, version: &str) -> Result<String> {
    let mut date = command(repo, "date");
    date.args(["--utc", "--rfc-email", "--date"]);
    let date = capture(date.arg(format!("@{}", time(repo)?)))?;
    Ok(format!(
        "sluice ({version}) stable; urgency=medium\n\n  * Version {version}.\n\n -- The Sluice developers \
         <maintainers@sluice.example>  {}\n",
        date.trim()
    ))
}

/// The package's control file.
fn description(repo: &Repo, root: &Path, version: &str) -> Result<String> {
    let template = deployment::folder(repo).join("debian/control");
    let template = fs::read_to_string(&template)
        .with_context(|| format!("cannot read {}", template.display()))?;
    let mut size = command(repo, "du");
    let size = capture(
        size.args(["--summarize", "--apparent-size", "--block-size=1024"])
            .arg(root),
    )?;
    let size = size.split_whitespace().next().context("du names no size")?;
    let values = [
        ("@VERSION@", version.to_owned()),
        ("@ARCHITECTURE@", architecture(repo)?),
        ("@SIZE@", size.to_owned()),
        ("@LIBRARIES@", libraries(repo, root)?),
    ];
    Ok(values
        .into_iter()
        .fold(template, |text, (place, value)| text.replace(place, &value)))
}

/// The packages whose libraries the program loads, as Debian finds them.
fn libraries(repo: &Repo, root: &Path) -> Result<String> {
    // It reads the names of packages from where a source package has them.
    let folder = scratch(repo).join("shlibdeps");
    fs::create_dir_all(folder.join("debian"))?;
    write(
        &folder.join("debian/control"),
        "Source: sluice\n\nPackage: sluice\nArchitecture: any\n",
    )?;
    let mut find = command(repo, "dpkg-shlibdeps");
    find.current_dir(&folder).arg("-O").arg("-e");
    let program = std::path::absolute(root.join("usr/bin/sluice"))?;
    let found = capture(find.arg(program))?;
    let line = found.trim().strip_prefix("shlibs:Depends=");
    line.map(str::to_owned)
        .context("dpkg-shlibdeps found no library, not even the C library")
}

fn architecture(repo: &Repo) -> Result<String> {
    let mut ask = command(repo, "dpkg");
    Ok(capture(ask.arg("--print-architecture"))?.trim().to_owned())
}

/// Whatever the user's mask is.
fn folders_are_open(folder: &Path) -> Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(FOLDER))?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            folders_are_open(&path)?;
        }
    }
    Ok(())
}

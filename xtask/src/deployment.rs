//! Files of `deploy/`, each checked by the program that reads it in earnest: alerts, unit, container and compose file, manifests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};

use crate::cache::Cache;
use crate::clients::python::Python;
use crate::command::command;
use crate::debian_tool::DebianTool;
use crate::packages::Package;
use crate::repo::Repo;
use crate::step::Step;

const PROMTOOL: DebianTool = DebianTool {
    package: "prometheus",
    program: "promtool",
    why: "it checks the alerts, and plays series to them that must fire them",
    download: "26 MB",
};

const KUBECTL: DebianTool = DebianTool {
    package: "kubernetes-client",
    program: "kubectl",
    why: "it puts the Kubernetes manifests together as a cluster's operator does",
    download: "8 MB",
};

/// What judges the unit, on a machine that need not run systemd.
const SYSTEMD: [Package; 1] = [Package::or_tool("systemd", "systemd-analyze")];

/// The highest exposure of the unit that `systemd-analyze security` may find, in tenths: of 10.0, which is everything.
const MOST_EXPOSURE: &str = "20";

/// System packages that are due.
pub const fn packages_needed() -> &'static [Package] {
    &SYSTEMD
}

/// Checks all of them.
pub fn check(repo: &Repo, cache: &Cache) -> Result<()> {
    let promtool = PROMTOOL.set_up(repo, cache)?;
    let kubectl = KUBECTL.set_up(repo, cache)?;
    let interpreter = Python::find(repo)?.environment(repo, &checks(repo))?;
    let step = Step::begin(
        repo,
        "deployment",
        "Checking alerts, unit, container and compose file, and manifests",
        "each by the program that reads it, or by its schema",
        "10 s",
    )?;
    alerts(repo, &step, &promtool)?;
    unit(repo, &step)?;
    container_file(repo, &step, &interpreter)?;
    compose_file(
        repo,
        &step,
        &interpreter,
        &folder(repo).join("container/compose.yaml"),
    )?;
    scripts(repo, &step, &interpreter)?;
    manifests(repo, &step, &kubectl, &interpreter)?;
    step.done();
    Ok(())
}

/// The folder of the files.
pub fn folder(repo: &Repo) -> PathBuf {
    repo.root().join("deploy")
}

/// The lock file of what judges them, and the judges that are scripts.
pub fn checks(repo: &Repo) -> PathBuf {
    folder(repo).join("checks")
}

fn alerts(repo: &Repo, step: &Step, promtool: &Path) -> Result<()> {
    let folder = folder(repo).join("prometheus");
    let [rules, tests] = ["alerts.yaml", "alerts.test.yaml"].map(|name| folder.join(name));
    step.run(command(repo, promtool).args(["check", "rules"]).arg(&rules))?;
    step.run(command(repo, promtool).args(["test", "rules"]).arg(&tests))?;
    let [rules, tests] = [rules, tests].map(|file| {
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    });
    let untested = untested(&rules?, &tests?);
    ensure!(
        untested.is_empty(),
        "alerts.test.yaml never lets these alerts fire: {}",
        untested.join(" ")
    );
    Ok(())
}

/// The alerts that no test expects to fire.
fn untested(rules: &str, tests: &str) -> Vec<String> {
    let named = |line: &str| Some(line.trim().strip_prefix("- alert: ")?.to_owned());
    let tests: Vec<&str> = tests.lines().map(str::trim).collect();
    let fires = |alert: &String| {
        let line = format!("- alertname: {alert}");
        // The time stands between, and an alert that is not to fire says `exp_alerts: []`.
        tests
            .windows(3)
            .any(|lines| lines[0] == line && lines[2] == "exp_alerts:")
    };
    rules
        .lines()
        .filter_map(named)
        .filter(|alert| !fires(alert))
        .collect()
}

fn unit(repo: &Repo, step: &Step) -> Result<()> {
    let unit = folder(repo).join("systemd/sluice.service");
    let mut security = command(repo, "systemd-analyze");
    security.args(["security", "--offline=true", "--threshold", MOST_EXPOSURE]);
    step.run(security.arg(&unit))?;
    // Its program is not installed here, which is the one thing that must not matter.
    let text =
        fs::read_to_string(&unit).with_context(|| format!("cannot read {}", unit.display()))?;
    let standing_in = text.replace("ExecStart=/usr/bin/sluice ", "ExecStart=/bin/true ");
    ensure!(
        standing_in != text,
        "the unit starts another program than /usr/bin/sluice"
    );
    let copy = repo.target().join("deployment/sluice.service");
    write(&copy, &standing_in)?;
    let mut verify = command(repo, "systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]);
    let said = step.read(verify.arg(&copy))?;
    // An unknown key is a warning to systemd, which then starts the service without that protection.
    ensure!(
        said.is_empty(),
        "systemd reads the unit with reserve: {}",
        said.join("; ")
    );
    Ok(())
}

fn container_file(repo: &Repo, step: &Step, interpreter: &Path) -> Result<()> {
    let file = folder(repo).join("container/Dockerfile");
    let hadolint = interpreter.with_file_name("hadolint");
    step.run(command(repo, hadolint).arg("--no-color").arg(&file))?;
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let pinned = pinned_compiler(repo)?;
    ensure!(
        text.contains(&format!("FROM rust:{pinned}-")),
        "the container file builds with another compiler than rust-toolchain.toml pins, {pinned}"
    );
    Ok(())
}

/// Judges a compose file as it is published, which is not the one of the repository.
pub fn judge_compose_file(repo: &Repo, file: &Path) -> Result<()> {
    let interpreter = Python::find(repo)?.environment(repo, &checks(repo))?;
    let step = Step::begin(
        repo,
        "compose",
        "Checking the compose file as it is published",
        "it names the released image where that of the repository builds one",
        "1 s",
    )?;
    compose_file(repo, &step, &interpreter, file)?;
    step.done();
    Ok(())
}

/// The schema is the one of the format's specification, which the program carries with it; its engine need not run here.
fn compose_file(repo: &Repo, step: &Step, interpreter: &Path, file: &Path) -> Result<()> {
    // Through the interpreter: the installed script names the folder that it was installed from.
    let mut judge = command(repo, interpreter);
    judge.args(["-m", "check_jsonschema"]);
    judge.args(["--builtin-schema", "vendor.compose-spec"]);
    step.run(judge.arg(file))
}

/// Scripts that run as root, on machines of others.
const SCRIPTS: [&str; 6] = [
    "checks/boot.sh",
    "checks/image.sh",
    "checks/package.sh",
    "debian/postinst",
    "debian/postrm",
    "debian/prerm",
];

fn scripts(repo: &Repo, step: &Step, interpreter: &Path) -> Result<()> {
    let mut judge = command(repo, interpreter.with_file_name("shellcheck"));
    let folder = folder(repo);
    step.run(judge.args(SCRIPTS.map(|name| folder.join(name))))
}

fn pinned_compiler(repo: &Repo) -> Result<String> {
    let text = fs::read_to_string(repo.root().join("rust-toolchain.toml"))
        .context("cannot read rust-toolchain.toml")?;
    let channel = text
        .lines()
        .find_map(|line| line.strip_prefix("channel = "));
    let channel = channel.context("rust-toolchain.toml names no channel")?;
    Ok(channel.trim_matches('"').to_owned())
}

fn manifests(repo: &Repo, step: &Step, kubectl: &Path, interpreter: &Path) -> Result<()> {
    let kustomized = repo.target().join("deployment/kubernetes.yaml");
    let mut build = command(repo, kubectl);
    build.arg("kustomize").arg(folder(repo).join("kubernetes"));
    let output = build
        .stderr(Stdio::piped())
        .output()
        .context("cannot start kubectl")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("kubectl cannot put deploy/kubernetes together: {why}");
    }
    write(&kustomized, &String::from_utf8_lossy(&output.stdout))?;
    let mut judge = command(repo, interpreter);
    judge.arg(folder(repo).join("checks/kubernetes.py"));
    judge.stdin(fs::File::open(&kustomized)?);
    step.run(&mut judge)
}

fn write(file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().context("a file stands in a folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, text))
        .with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_counts_as_tested_when_a_test_lets_it_fire() {
        let rules = "  - alert: One\n    expr: a\n  - alert: Two\n  - alert: Three\n";
        let fires = "- alertname: One\n  eval_time: 1m\n  exp_alerts:\n    - exp_labels: {}\n";
        let silent = "- alertname: Two\n  eval_time: 1m\n  exp_alerts: []\n";
        assert_eq!(
            untested(rules, &format!("{fires}{silent}")),
            ["Two", "Three"]
        );
        assert_eq!(untested("- alert: One\n", fires), [""; 0]);
    }
}

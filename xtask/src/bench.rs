//! `bench`: measures what the project promises about its costs, and compares with what is committed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Map, Value};

use crate::cache::Cache;
use crate::command::command;
use crate::output::say;
use crate::packages::{self, Package};
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;
use crate::{programs, sbf};

/// Something that can be measured by itself.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// Compute units, size and heap use of the on-chain guard.
    Guard,
    /// Instructions of a quote and of a transaction, under valgrind.
    Requests,
    /// Speed and memory of the live market and of quotes, on this machine.
    Quote,
    /// How fast the API builds transactions, against a server that does nothing but HTTP and JSON.
    Build,
    /// How fast a new quote reaches 10,000 streams, and what each of them costs, on this machine.
    Stream,
    /// How fast webhooks are matched and delivered, and what a long queue costs, on this machine.
    Webhooks,
}

impl Subject {
    /// Its place in the report.
    fn key(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Requests => "requests",
            Self::Quote => "quote",
            Self::Build => "build",
            Self::Stream => "stream",
            Self::Webhooks => "webhooks",
        }
    }

    fn measure(self, repo: &Repo) -> Result<Value> {
        match self {
            Self::Guard => measure_guard(repo),
            Self::Requests => measure_requests(repo),
            Self::Quote => measure_quote(repo),
            Self::Build => measure_build(repo),
            Self::Stream => measure_stream(repo),
            Self::Webhooks => measure_webhooks(repo),
        }
    }

    /// Whether the on-chain programs must be built for it.
    fn needs_programs(self) -> bool {
        self == Self::Guard
    }

    /// By how many percent a figure may grow over the committed one, where every machine gives the same figures; `None`
    /// where figures are those of a machine.
    fn growth_allowed(self) -> Option<u64> {
        match self {
            Self::Guard => Some(0),
            // Tables of hashes and wake-ups differ a little from run to run.
            Self::Requests => Some(3),
            _ => None,
        }
    }

    /// Packages of the system that measuring it needs.
    pub fn packages_needed(self) -> &'static [Package] {
        match self {
            Self::Requests => {
                const VALGRIND: [Package; 1] = [Package::or_tool("valgrind", "valgrind")];
                &VALGRIND
            }
            _ => &[],
        }
    }
}

/// Sets up what the measurement needs, measures, and writes the figures or, with `check_only`, compares them.
pub fn run(repo: &Repo, cache: &Cache, subject: Subject, check_only: bool) -> Result<()> {
    packages::require(repo, subject.packages_needed(), "The measurement")?;
    if subject.needs_programs() {
        programs::build(repo, cache)?;
    }
    if check_only {
        check(repo, subject)
    } else {
        write(repo, subject)
    }
}

/// Measures, and writes the figures into `bench-report.json`, those that are the same on every machine.
fn write(repo: &Repo, subject: Subject) -> Result<()> {
    let measured = subject.measure(repo)?;
    if subject.growth_allowed().is_none() {
        return require_met(&measured);
    }
    let file = committed(repo);
    let mut report = if file.is_file() {
        read(&file)?
    } else {
        Value::Object(Map::new())
    };
    report[subject.key()] = measured;
    let text =
        serde_json::to_string_pretty(&report).context("JSON values can always be written")?;
    fs::write(&file, text + "\n").with_context(|| format!("cannot write {}", file.display()))?;
    say!("==> Wrote {}", repo.shown(&file));
    Ok(())
}

/// Measures, and fails when a figure is not what it must be, or, where figures are exact, worse than the committed one.
///
/// The committed figures are those of the upstream toolchain: the official one makes other code of the same source, so
/// there only the figures' own limits count, which a test holds.
pub fn check(repo: &Repo, subject: Subject) -> Result<()> {
    let measured = subject.measure(repo)?;
    require_met(&measured)?;
    let Some(allowed) = subject.growth_allowed() else {
        return Ok(());
    };
    if subject.needs_programs() && sbf::official::is_there() {
        say!("    not compared: the committed figures are those of the other toolchain");
        return Ok(());
    }
    let file = committed(repo);
    let worse = worse(&read(&file)?[subject.key()], &measured, allowed)?;
    if worse.is_empty() {
        return Ok(());
    }
    bail!(
        "worse than {}:\n  {}\nif the change is worth it, `cargo xtask bench {}` writes the new figures",
        repo.shown(&file),
        worse.join("\n  "),
        subject.key()
    )
}

fn committed(repo: &Repo) -> PathBuf {
    repo.root().join("bench-report.json")
}

fn measure_guard(repo: &Repo) -> Result<Value> {
    let step = Step::begin(
        repo,
        "bench-guard",
        "Measuring the guard",
        "what it adds to a swap is paid by every user of it",
        "a few minutes from nothing, seconds after an edit",
    )?;
    measure(repo, step, Build::Test, "guard-figures", "guard.json")
}

fn measure_requests(repo: &Repo) -> Result<Value> {
    let step = Step::begin(
        repo,
        "bench-requests",
        "Counting the instructions of requests",
        "unlike times, they are the same on every machine",
        "a few minutes from nothing, two minutes after an edit",
    )?;
    measure(
        repo,
        step,
        Build::Test,
        "instruction-figures",
        "requests.json",
    )
}

fn measure_quote(repo: &Repo) -> Result<Value> {
    let step = Step::begin(
        repo,
        "bench-quote",
        "Measuring quotes",
        "a quote that is late is a quote of another price",
        "10 minutes from nothing, for the release build; two minutes after it",
    )?;
    measure(repo, step, Build::Release, "quote-figures", "quote.json")
}

fn measure_build(repo: &Repo) -> Result<Value> {
    let step = Step::begin(
        repo,
        "bench-build",
        "Measuring how fast transactions are built",
        "a swap that waits for its transaction meets another price",
        "10 minutes from nothing, for the release build; a minute after it, some minutes on a busy machine",
    )?;
    measure(repo, step, Build::Release, "build-figures", "build.json")
}

fn measure_stream(repo: &Repo) -> Result<Value> {
    let step = Step::begin(
        repo,
        "bench-stream",
        "Measuring quote streams",
        "a price that comes late to the last of ten thousand is another price",
        "10 minutes from nothing, for the release build; two minutes after it",
    )?;
    measure(repo, step, Build::Release, "stream-figures", "stream.json")
}

fn measure_webhooks(repo: &Repo) -> Result<Value> {
    let step = Step::begin(
        repo,
        "bench-webhooks",
        "Measuring webhooks",
        "an event that waits in a queue is an event that comes too late",
        "10 minutes from nothing, for the release build; three minutes after it",
    )?;
    measure(
        repo,
        step,
        Build::Release,
        "webhook-figures",
        "webhooks.json",
    )
}

/// How a program that measures is built.
#[derive(Clone, Copy)]
enum Build {
    /// As the tests are, linted: for figures that no machine changes.
    Test,
    /// To measure this machine.
    Release,
}

impl Build {
    /// The words of cargo before the name of the program.
    const fn words(self) -> &'static [&'static str] {
        match self {
            // The whole workspace is named so that its crates get the same features as in a test run, and are compiled once.
            Self::Test => &["build", "--workspace", "--locked", "--bin"],
            // Without the features for tests on a chain in memory: those take twice as long to compile as all the rest.
            Self::Release => &[
                "build",
                "--release",
                "--locked",
                "--package",
                "sluice-bench",
                "--no-default-features",
                "--bin",
            ],
        }
    }

    /// Where cargo puts what it has built.
    const fn folder(self) -> &'static str {
        match self {
            Self::Test => "debug",
            Self::Release => "release",
        }
    }
}

/// Builds and runs a program that writes its figures to the file named as its argument.
fn measure(repo: &Repo, step: Step, build: Build, program: &str, file: &str) -> Result<Value> {
    let words = [build.words(), &[program]].concat();
    let built_from = match build {
        Build::Test => repo.linted_as_it_is_built(),
        Build::Release => repo.clone(),
    };
    step.run(&mut Workspace::root(&built_from).cargo(repo, &words))?;
    let folder = repo.target().join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let file = folder.join(file);
    let built = repo.target().join(build.folder()).join(program);
    let (status, _) = step.run_in_full_view(command(repo, built).arg(&file))?;
    if !status.success() {
        bail!("the measurement ended with {status}, see the output above");
    }
    step.done();
    read(&file)
}

/// Fails when a figure is not what it must be.
fn require_met(measured: &Value) -> Result<()> {
    let figures = measured.as_array().context("the figures are no list")?;
    let missed: Vec<String> = figures
        .iter()
        .filter(|figure| figure["met"] != true)
        .map(|figure| {
            format!(
                "{}: {} {}, must be {}",
                figure["figure"], figure["value"], figure["unit"], figure["must"]
            )
        })
        .collect();
    if missed.is_empty() {
        return Ok(());
    }
    bail!("missed:\n  {}", missed.join("\n  "))
}

fn read(file: &Path) -> Result<Value> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))
}

/// What is worse among the measured figures by more than so many percent, in words. Less is better in all of them.
fn worse(committed: &Value, measured: &Value, allowed: u64) -> Result<Vec<String>> {
    let mut worse = Vec::new();
    for figure in measured.as_array().context("the figures are no list")? {
        let name = figure["figure"].as_str().context("a figure has no name")?;
        let value = figure["value"].as_u64().context("a figure has no value")?;
        match value_of(committed, name) {
            Some(before) if value * 100 > before * (100 + allowed) => {
                worse.push(format!("{name}: {before} -> {value}"))
            }
            Some(_) => {}
            None => worse.push(format!("{name}: nothing -> {value}")),
        }
    }
    Ok(worse)
}

fn value_of(figures: &Value, name: &str) -> Option<u64> {
    let mut figures = figures.as_array()?.iter();
    figures.find(|figure| figure["figure"] == name)?["value"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_grew_or_is_new_is_worse() {
        let committed = json!([
            {"figure": "same", "value": 5},
            {"figure": "better", "value": 5},
            {"figure": "worse", "value": 5},
            {"figure": "gone", "value": 5},
        ]);
        let measured = json!([
            {"figure": "same", "value": 5},
            {"figure": "better", "value": 4},
            {"figure": "worse", "value": 6},
            {"figure": "new", "value": 1},
        ]);
        let worse = worse(&committed, &measured, 0).expect("well formed");
        assert_eq!(worse, ["worse: 5 -> 6", "new: nothing -> 1"]);
    }

    #[test]
    fn what_grew_by_no_more_than_is_allowed_is_not_worse() {
        let figure = |value: u64| json!([{"figure": "a", "value": value}]);
        let worse = |value| worse(&figure(1_000), &figure(value), 3).expect("well formed");
        assert!(worse(1_030).is_empty());
        assert_eq!(worse(1_031), ["a: 1000 -> 1031"]);
    }

    #[test]
    fn what_is_not_met_is_named() {
        let figure =
            |met: bool| json!([{"figure": "a", "value": 3, "unit": "%", "must": 2, "met": met}]);
        assert!(require_met(&figure(true)).is_ok());
        let error = require_met(&figure(false)).expect_err("missed");
        assert!(
            error.to_string().contains("\"a\": 3 \"%\", must be 2"),
            "{error}"
        );
        assert!(require_met(&json!([{"figure": "a"}])).is_err());
    }

    #[test]
    fn a_report_without_the_subject_counts_as_nothing_committed() {
        let measured = json!([{"figure": "a", "value": 0}]);
        let worse = worse(&Value::Null, &measured, 0).expect("well formed");
        assert_eq!(worse, ["a: nothing -> 0"]);
        assert!(super::worse(&Value::Null, &Value::Null, 0).is_err());
    }
}

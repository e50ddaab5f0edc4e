//! Long trials that a binary of the tests runs: parity, faults, chaos, truth.

use std::{num::NonZeroU32, process::Command};

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::cache::Cache;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;
use crate::{binaries, exchange, faketime, plugin, postgres, programs, system_packages, validator};

/// Which databases are killed.
#[derive(Clone, Copy, ValueEnum)]
pub enum Store {
    Sqlite,
    Postgres,
    Both,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Both => "both",
        }
    }
}

/// How a trial is announced, and what its failure means.
struct Wording<'a> {
    what: &'a str,
    why: &'a str,
    takes: &'a str,
    failure: &'a str,
}

/// Compares `cases` swaps of each row that `seed` names, on the stand-in or on the program that replaces it.
pub fn parity(repo: &Repo, cache: &Cache, cases: usize, seed: u64) -> Result<()> {
    let replacement = exchange::replacement()?;
    programs::build_served(repo, cache)?;
    let mut parity = run(repo, "parity");
    exchange::hand_on(replacement.as_deref(), &mut parity);
    parity.arg("--cases").arg(cases.to_string());
    let wording = Wording {
        what: &format!("Comparing {cases} random swaps of each of five kinds, of seed {seed}"),
        why: "a quote must equal what the exchange pays, to the unit, or both must refuse alike",
        takes: "two minutes for 20,000",
        failure: "the arithmetic and the exchange differ; the mismatches are above",
    };
    conduct(repo, "parity", &wording, parity, seed)
}

/// Plays `runs` scripts, the first one made by `seed`.
pub fn faults(repo: &Repo, runs: u64, seed: u64) -> Result<()> {
    let mut faults = run(repo, "faults");
    faults.arg("--runs").arg(runs.to_string());
    let wording = Wording {
        what: &format!("Playing {runs} random scripts from seed {seed} on"),
        why: "whatever goes wrong on the way, the market must show the chain or say that it cannot",
        takes: "a minute for 1,000",
        failure: "the market and the model differ; the seeds are above",
    };
    conduct(repo, "faults", &wording, faults, seed)
}

/// Kills indexers, dispatchers and databases so many times, drawn by `seed`, lets disasters befall them meanwhile, all or those
/// that are named, and counts what arrives.
pub fn chaos(
    repo: &Repo,
    cache: &Cache,
    (kills, disasters): (u32, &[String]),
    seed: u64,
    store: Store,
) -> Result<()> {
    let mut needed = faketime::packages_needed().to_vec();
    if !matches!(store, Store::Sqlite) {
        needed.extend(postgres::packages_needed());
    }
    system_packages::require(repo, cache, &needed)?;
    // The trial starts the service that lies beside it.
    binaries::build(repo)?;
    let mut chaos = run(repo, "chaos");
    chaos.arg("--kills").arg(kills.to_string());
    chaos.arg("--store").arg(store.name());
    if !disasters.is_empty() {
        chaos.arg("--disasters").arg(disasters.join(","));
    }
    let wording = Wording {
        what: &format!(
            "Killing what indexes, delivers and stores, {kills} times on each database, drawn by seed {seed}"
        ),
        why: "whatever dies when, no webhook may miss an event, or get two messages under one id",
        takes: "8 minutes for 100",
        failure: "something was lost or emitted wrongly; what it was is above",
    };
    conduct(repo, "chaos", &wording, chaos, seed)
}

/// Cuts the streams of Sluice on a localnet for so many seconds, by faults that `seed` draws, and counts against the chain.
///
/// With `edits_per_second` filters are edited so often, and the indexer's stream is left alone.
pub fn truth(
    repo: &Repo,
    cache: &Cache,
    seconds: u64,
    seed: u64,
    edits_per_second: Option<NonZeroU32>,
) -> Result<()> {
    let replacement = exchange::replacement()?;
    let geyser = plugin::Replacement::find(repo)?;
    system_packages::require(repo, cache, &[])?;
    let validator = validator::set_up(repo, cache)?;
    programs::build_served(repo, cache)?;
    plugin::provide(repo, &geyser)?;
    // The trial starts the service that lies beside it.
    binaries::build(repo)?;
    let mut truth = run_of(repo, "sluice-e2e", "truth");
    truth.env("SLUICE_VALIDATOR", validator);
    exchange::hand_on(replacement.as_deref(), &mut truth);
    geyser.hand_on(&mut truth);
    truth.arg("--seconds").arg(seconds.to_string());
    if let Some(edits) = edits_per_second {
        truth.arg("--edits-per-second").arg(edits.to_string());
    }
    let wording = Wording {
        what: &format!("Cutting streams and editing filters for {seconds} s, drawn by seed {seed}"),
        why: "what is emitted and quoted must be what the chain did, whatever the stream does",
        takes: "a minute more than the faults last: all must be final before it is counted",
        failure: "something was lost, invented or quoted wrongly; what it was is above",
    };
    conduct(repo, "truth", &wording, truth, seed)
}

/// Runs a binary of the simulations, which is built when it is not; its arguments follow.
fn run(repo: &Repo, binary: &str) -> Command {
    run_of(repo, "sluice-simulations", binary)
}

fn run_of(repo: &Repo, package: &str, binary: &str) -> Command {
    let words = ["run", "--quiet", "--package", package, "--bin", binary];
    let mut run = Workspace::root(repo).cargo(repo, &words);
    run.arg("--");
    run
}

fn conduct(
    repo: &Repo,
    name: &str,
    wording: &Wording<'_>,
    mut trial: Command,
    seed: u64,
) -> Result<()> {
    trial.arg("--seed").arg(seed.to_string());
    let step = Step::begin(repo, name, wording.what, wording.why, wording.takes)?;
    let (status, _) = step.run_in_full_view(&mut trial)?;
    if !status.success() {
        bail!("{}", wording.failure);
    }
    step.done();
    Ok(())
}

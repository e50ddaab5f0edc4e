//! Chaos: kills everything at random and counts what arrives; see `cargo xtask chaos`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Parser, ValueEnum};
use sluice_simulations::chaos::{Disaster, Kind, Plan, history::History, run};

/// How long everything owed may take to arrive once nothing is killed any more: leases of the dead run out after
/// 16 s, receivers that were given up are tried again within minutes.
const DRAINING: Duration = Duration::from_secs(10 * 60);

/// Kills indexers, dispatchers and databases while receivers misbehave, and looks whether anything is lost.
#[derive(Parser)]
struct Arguments {
    /// How many kills on each database.
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// The same seed plays the same chain, answers alike and draws the same kills.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// On which database.
    #[arg(long, value_enum, default_value_t = Which::Both)]
    store: Which,
    /// What befalls them between the kills, in this order; all when none is named.
    #[arg(long, value_enum, value_delimiter = ',', num_args = 0.., default_values_t = Disaster::ALL)]
    disasters: Vec<Disaster>,
    /// Only judges the history of an earlier run, which is kept when that was not clean.
    #[arg(long, value_name = "HISTORY")]
    check: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Which {
    Sqlite,
    Postgres,
    Both,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let clean = tokio::select! {
        clean = all(&arguments) => clean,
        // So that what was started is ended.
        _ = tokio::signal::ctrl_c() => Ok(false),
    };
    match clean {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Judges a history, and prints what is wrong.
fn check(history: &Path) -> anyhow::Result<bool> {
    let history = std::fs::read_to_string(history)?;
    let history = History::parse(&history).map_err(anyhow::Error::msg)?;
    let judged = history.judge().map_err(anyhow::Error::msg)?;
    let faults: Vec<_> = judged.all_faults().collect();
    for fault in &faults {
        println!("{fault}");
    }
    println!(
        "{} arrivals, {} faults",
        history.arrivals.len(),
        faults.len()
    );
    Ok(faults.is_empty())
}

async fn all(arguments: &Arguments) -> anyhow::Result<bool> {
    if let Some(history) = &arguments.check {
        return check(history);
    }
    let kinds: &[Kind] = match arguments.store {
        Which::Sqlite => &[Kind::Sqlite],
        Which::Postgres => &[Kind::Postgres],
        Which::Both => &Kind::ALL,
    };
    let mut reports = Vec::new();
    for kind in kinds {
        let plan = Plan {
            kind: *kind,
            kills: arguments.kills,
            disasters: arguments.disasters.clone(),
            seed: arguments.seed,
            draining: DRAINING,
        };
        reports.push(run(plan, |progress| println!("{progress}")).await?);
    }
    for report in &reports {
        println!("\n{report}");
        for fault in &report.faults {
            println!("  {fault}");
        }
    }
    Ok(reports.iter().all(|report| report.is_clean()))
}

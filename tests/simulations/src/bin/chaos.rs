//! Chaos: kills everything at random and counts what arrives; see `cargo xtask chaos`.

use std::{process::ExitCode, time::Duration};

use clap::{Parser, ValueEnum};
use sluice_simulations::chaos::{Kind, Plan, run};

/// How long everything owed may take to arrive once nothing is killed any more: leases of the dead run out after
/// 16 s, receivers that were given up are tried again within minutes.
const DRAINING: Duration = Duration::from_secs(10 * 60);

/// Kills indexers, dispatchers and databases while receivers misbehave, and looks whether anything is lost.
#[derive(Parser)]
struct Arguments {
    /// How many kills, shared among the databases.
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// The same seed plays the same chain, answers alike and draws the same kills.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// On which database.
    #[arg(long, value_enum, default_value_t = Which::Both)]
    store: Which,
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

async fn all(arguments: &Arguments) -> anyhow::Result<bool> {
    let kinds: &[Kind] = match arguments.store {
        Which::Sqlite => &[Kind::Sqlite],
        Which::Postgres => &[Kind::Postgres],
        Which::Both => &Kind::ALL,
    };
    let share = arguments
        .kills
        .div_ceil(u32::try_from(kinds.len()).unwrap_or(u32::MAX));
    let mut reports = Vec::new();
    for kind in kinds {
        let plan = Plan {
            kind: *kind,
            kills: share,
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

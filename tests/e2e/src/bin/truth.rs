//! Truth run against whatever Geyser plugin and exchange the localnet has; see `cargo xtask truth`.

use std::{num::NonZeroU32, process::ExitCode};

use clap::Parser;
use sluice_e2e::truth::{Plan, run};
use sluice_localnet::{Artifacts, artifacts::Overrides};

/// Cuts the streams of a running Sluice, edits its filters, and counts what it emitted against what landed.
#[derive(Parser)]
struct Arguments {
    /// How long faults are made.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The same seed draws the same faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Edit filters so often, and leave the indexer's stream alone: it must never be opened again.
    #[arg(long)]
    edits_per_second: Option<NonZeroU32>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments {
        seconds,
        seed,
        edits_per_second,
    } = Arguments::parse();
    let plan = Plan {
        seconds,
        seed,
        edits_per_second,
    };
    let judged = tokio::select! {
        judged = truth(plan) => judged,
        // So that what was started is ended.
        _ = tokio::signal::ctrl_c() => Ok(false),
    };
    match judged {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn truth(plan: Plan) -> anyhow::Result<bool> {
    let artifacts = Artifacts::find(&Overrides::default())?;
    let report = run(&artifacts, plan, |line| println!("    {line}")).await?;
    println!("{report}");
    Ok(report.is_clean())
}

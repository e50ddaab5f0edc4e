//! Faults: plays random scripts of faults against the model of the market; see `cargo xtask faults`.

use std::process::ExitCode;

use clap::Parser;
use sluice_simulations::faults::explore::explore_many;

/// Most scripts that are reported in full: one is enough to find a fault, a few show its pattern.
const SHOWN: usize = 5;

/// Between two signs of life, scripts.
const PROGRESS: u64 = 100;

/// Random scripts through the market's real task, against the model.
#[derive(Parser)]
struct Arguments {
    /// How many scripts to play.
    #[arg(long, default_value_t = 1_000)]
    runs: u64,
    /// Seed of the first script; the next ones follow it. The same seed gives the same script.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    // A script that goes wrong panics, and is reported below, with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let Arguments { runs, seed } = Arguments::parse();
    let found = explore_many(seed, runs, |done| {
        if done % PROGRESS == 0 {
            println!("{done} of {runs} scripts");
        }
    })
    .await;
    for divergence in found.iter().take(SHOWN) {
        println!("seed {}: {}", divergence.seed, divergence.what);
    }
    println!(
        "{runs} scripts from seed {seed} on: {} divergences",
        found.len()
    );
    if found.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

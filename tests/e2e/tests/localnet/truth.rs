//! Short truth run: nothing lost, invented or quoted wrongly while streams fail and filters change.

use std::num::NonZeroU32;

use anyhow::ensure;
use sluice_e2e::truth::{Plan, run};
use sluice_localnet::{Artifacts, artifacts::Overrides};

/// With finality, and without: for its sake the indexer reads slots again at each reconnect that it would miss otherwise.
const SEEDS: [u64; 2] = [1, 2];

#[tokio::test]
async fn what_is_emitted_and_quoted_is_what_the_chain_did() -> anyhow::Result<()> {
    let artifacts = Artifacts::find(&Overrides::default())?;
    for seed in SEEDS {
        let plan = Plan {
            seconds: 15,
            seed,
            edits_per_second: None,
        };
        let report = run(&artifacts, plan, |line| println!("{line}")).await?;
        println!("{report}");
        ensure!(report.is_clean(), "{report}");
    }
    Ok(())
}

#[tokio::test]
async fn ten_edits_a_second_lose_nothing_and_leave_the_stream_open() -> anyhow::Result<()> {
    let artifacts = Artifacts::find(&Overrides::default())?;
    let plan = Plan {
        seconds: 60,
        seed: 1,
        edits_per_second: NonZeroU32::new(10),
    };
    let report = run(&artifacts, plan, |line| println!("{line}")).await?;
    println!("{report}");
    ensure!(report.is_clean(), "{report}");
    Ok(())
}

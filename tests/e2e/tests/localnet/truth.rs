//! Short truth run: nothing lost, invented or quoted wrongly while streams fail and filters change.

use anyhow::ensure;
use sluice_e2e::truth::{Plan, run};
use sluice_localnet::{Artifacts, artifacts::Overrides};

/// With finality, and without: for its sake the indexer reads slots again at each reconnect that it would miss otherwise.
const SEEDS: [u64; 2] = [1, 2];

#[tokio::test]
async fn what_is_emitted_and_quoted_is_what_the_chain_did() -> anyhow::Result<()> {
    let artifacts = Artifacts::find(&Overrides::default())?;
    for seed in SEEDS {
        let plan = Plan { seconds: 15, seed };
        let report = run(&artifacts, plan, |line| println!("{line}")).await?;
        println!("{report}");
        ensure!(report.is_clean(), "{report}");
    }
    Ok(())
}

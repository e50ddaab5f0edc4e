//! Short truth run: nothing lost, invented or quoted wrongly while streams fail and filters change.

use anyhow::ensure;
use sluice_e2e::truth::{Plan, run};
use sluice_localnet::{Artifacts, artifacts::Overrides};

#[tokio::test]
async fn what_is_told_and_quoted_is_what_the_chain_did() -> anyhow::Result<()> {
    let artifacts = Artifacts::find(&Overrides::default())?;
    let plan = Plan {
        seconds: 30,
        seed: 1,
    };
    let report = run(&artifacts, plan, |line| println!("{line}")).await?;
    println!("{report}");
    ensure!(report.is_clean(), "{report}");
    Ok(())
}

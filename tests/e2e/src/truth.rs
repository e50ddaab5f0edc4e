//! Truth run: compares what was emitted with what landed, while streams are cut and filters edited.
//!
//! Transfers and swaps are sent at a steady rate; in one pool more the swaps pause now and then, and a quote is judged. Webhooks
//! are told of all their transactions, of the exchange's events, and of the accounts that they write.
//!
//! Everything is what runs in production but the network between Sluice and its stream, which is cut and frozen at random,
//! and the validator's time: its process is stopped for about a second at a time, the chain with it, and our own plugin falls
//! behind a chain that goes on.
//! The judge is the chain itself, over JSON-RPC: what landed, and what a simulated swap pays.

mod facts;
mod faults;
mod ledger;
mod quotes;
mod report;
mod services;
mod swaps;
mod traffic;
mod webhooks;

use std::{
    fs,
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use sluice_localnet::{
    Artifacts, Localnet, NetOptions, SlotLength, ports::Wanted, scene::PoolAddresses,
};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

pub use report::Report;

use self::{
    faults::Faults, quotes::Quotes, report::Commitment, services::Services, swaps::Swaps,
    traffic::Transfers, webhooks::Watch,
};

/// How long a run is, and what is drawn in it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How long faults are made, seconds. What lands meanwhile is judged once it is final.
    pub seconds: u64,
    /// The same seed draws the same faults; the chain's own timing differs from run to run.
    pub seed: u64,
    /// Filters are edited so often, and the indexer's stream is left alone; `None` where it is cut, and edits are few.
    pub edits_per_second: Option<NonZeroU32>,
}

/// Pause between two edits where the plan names no number: each filter is edited every two seconds.
const BETWEEN_FEW_EDITS: Duration = Duration::from_millis(700);

/// Where a plugin's configuration says that it does not fall behind its validator: ours does.
const NO_LAG: &str = "lag: null";

/// What it says in a run: less than anybody waits for a slot.
const LAG: &str = "lag: { every_ms: 4000, for_ms: 1000 }";

impl Plan {
    /// Pause between two edits, of the webhooks in turn.
    fn between_edits(self) -> Duration {
        let of_number = |edits: NonZeroU32| Duration::from_secs(1) / edits.get();
        self.edits_per_second.map_or(BETWEEN_FEW_EDITS, of_number)
    }

    /// How many edits a rate comes to; `None` where the plan names none.
    fn edits_asked(self) -> Option<u64> {
        let of_rate = |rate: NonZeroU32| u64::from(rate.get()) * self.seconds;
        self.edits_per_second.map(of_rate)
    }

    /// The commitments at which there are webhooks. Every other seed leaves finality out: for its sake the indexer reads
    /// some thirty slots again at each reconnect, and would find there what it lost before.
    /// Where the stream is left alone there is none.
    fn commitments(self) -> &'static [Commitment] {
        if self.seed.is_multiple_of(2) && self.edits_per_second.is_none() {
            &[Commitment::Processed, Commitment::Confirmed]
        } else {
            &Commitment::ALL
        }
    }
}

/// Runs it on a localnet of its own.
///
/// # Errors
/// When a part does not start or the chain cannot be asked. What the service did wrong is no error: see [`Report`].
pub async fn run(artifacts: &Artifacts, plan: Plan, progress: fn(&str)) -> anyhow::Result<Report> {
    let folder = tempfile::tempdir()?;
    let mut artifacts = artifacts.clone();
    if plan.edits_per_second.is_none() {
        artifacts.plugin_config = lagging(&artifacts.plugin_config, folder.path())?;
    }
    let artifacts = &artifacts;
    let options = NetOptions {
        dir: folder.path().to_owned(),
        ports: Wanted::default(),
        slots: SlotLength::OfClusters,
        progress,
    };
    let mut net = Localnet::start(artifacts, &options).await?;
    let services = Services::start(artifacts, &mut net).await?;
    progress("the localnet is up, and the streams of API and indexer run over links that can fail");
    let judged = judge(&net, &services, plan, progress).await;
    let judged = judged.with_context(|| services.logs());
    services.stop()?;
    net.stop().await?;
    judged
}

/// The template of the plugin's configuration, with a lag where that is a setting of it, in a folder.
fn lagging(template: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join("lagging.json5");
    let text = fs::read_to_string(template).context("the Geyser plugin's configuration")?;
    fs::write(&path, text.replacen(NO_LAG, LAG, 1))?;
    Ok(path)
}

async fn judge(
    net: &Localnet,
    services: &Services,
    plan: Plan,
    progress: fn(&str),
) -> anyhow::Result<Report> {
    let (usd, levy) = (net.scene.usd, net.scene.levy);
    let mut mints = [usd.mint, levy.mint];
    mints.sort();
    let pool = PoolAddresses::of(&mints[0], &mints[1]);
    let watch = Watch::create(net, &pool, plan.commitments()).await?;
    let (stop, all_sent) = (CancellationToken::new(), CancellationToken::new());
    let landed = ledger::follow(net, watch.watching(), all_sent.clone()).await?;
    let transfers = Transfers::spawn(net, watch.watching().account, stop.clone());
    let swaps = Swaps::prepare(net, [usd, levy]).await?;
    let quotes = Quotes::prepare(net).await?;
    let swaps = swaps.spawn(stop.clone());
    let quotes: JoinHandle<anyhow::Result<Quotes>> = tokio::spawn(quotes.run(stop.clone()));
    let faults = Faults::spawn(services, &net.validator.process, plan, stop.clone());
    let edits = watch.spawn_edits(plan.between_edits(), &stop);
    for left in (1..=plan.seconds).rev() {
        if left % 10 == 0 {
            progress(&format!("{left} s of faults left"));
        }
        sleep(Duration::from_secs(1)).await;
    }
    stop.cancel();
    let faults = faults.await?;
    let sent = transfers.await??;
    let swaps = swaps.await??;
    let quotes = quotes.await??;
    let edits = edits.await??;
    progress("the links are whole; waiting until all that landed is final and delivered");
    all_sent.cancel();
    let landed = landed.await??;
    let emitted = watch.count_emitted(&landed).await;
    let reconnects = services.indexer_reconnects(net).await?;
    Ok(Report {
        plan,
        faults,
        edits,
        reconnects,
        market_connections: services.api_link.opened(),
        sent,
        swaps,
        quotes: quotes.counts(),
        landed: landed.kinds,
        emitted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_plugin_lags() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let own = sluice_localnet::artifacts::repository_root().join("geyser-plugin/config.json5");
        let path = lagging(&own, folder.path()).expect("the repository's own");
        let text = fs::read_to_string(path).expect("was written");
        assert!(text.contains(LAG) && !text.contains(NO_LAG), "{text}");
    }
}

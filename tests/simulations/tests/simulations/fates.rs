//! Short runs of random fates of the chain, on each database.

use std::path::Path;

use sluice_harness::indexer::IndexerHarness;
use sluice_simulations::fates::explore;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_has_its_end_in_sqlite() {
    explore(0..80, IndexerHarness::sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_has_its_end_in_postgres() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    explore(1_000..1_020, || IndexerHarness::postgres(folder, "fates")).await;
}

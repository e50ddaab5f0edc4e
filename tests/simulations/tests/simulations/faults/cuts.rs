//! Connections that are cut at random while swaps run.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::time::sleep;

use super::Scenario;

/// How often the connection is cut.
const CUTS: u32 = 8;

/// Slots between two cuts: longer than the market takes to connect again.
const SLOTS: u32 = 40;

/// Swaps of one slot, and the time between two of them. What the market connects in the middle of is cut in two.
const SWAPS: u32 = 8;
const BETWEEN_SWAPS: Duration = Duration::from_millis(3);

/// Whatever the market shows while it is ready is held against the truth of the same slot, all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_market_whose_connection_is_cut_while_swaps_run_shows_no_slot_without_its_first_writes() {
    let mut scenario = Scenario::ready().await;
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..CUTS {
        let mut until_cut = rng.random_range(0..SLOTS * SWAPS / 2);
        for _ in 0..SLOTS {
            let slot = scenario.open(scenario.head);
            for _ in 0..SWAPS {
                if until_cut == 0 {
                    scenario.link.cut();
                }
                until_cut = until_cut.wrapping_sub(1);
                let pool = scenario.pool(rng.random_range(0..scenario.exchange.pools.len()));
                scenario.swap(slot, &pool, rng.random_range(1..1_000));
                sleep(BETWEEN_SWAPS).await;
            }
            scenario.seal(slot);
            scenario.confirm(slot);
            scenario.head = slot;
        }
    }
    let opened = scenario.server.requests().len();
    assert!(opened > 1, "the connection was never cut");
    scenario.was_true();
    scenario.agree().await;
    scenario.end().await;
}

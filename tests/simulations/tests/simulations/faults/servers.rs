//! Several servers at once: one that is down, stands still, is behind or lies costs nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use sluice_geyser::SlotStatus;
use sluice_simulations::faults::{GENESIS, observed::Reader};
use sluice_testkit::{network_link::NetworkLink, yellowstone_server::YellowstoneServer};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::Scenario;

/// Messages of a minute at 400 ms a slot: some 150 slots, each with nine.
const A_MINUTE: usize = 150 * 9;

/// No step takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Slots after which a slot is finalized.
const FINALITY: u64 = 32;

/// A market between the server of [`Scenario::link`] and another one of the same chain, over a link of its own.
struct TwoServers {
    scenario: Scenario,
    other: YellowstoneServer,
    line: NetworkLink,
}

impl TwoServers {
    async fn prepared(prepare: impl FnOnce(&YellowstoneServer)) -> Self {
        let mut made = None;
        let scenario = Scenario::prepared(async |_, server| {
            let other = YellowstoneServer::start(server.chain().clone())
                .await
                .expect("a free port");
            prepare(&other);
            let line = NetworkLink::to(other.address()).await.expect("a free port");
            let url = line.url();
            made = Some((other, line));
            vec![url]
        })
        .await;
        let (other, line) = made.expect("it was set up");
        Self {
            scenario,
            other,
            line,
        }
    }

    async fn ready() -> Self {
        let mut servers = Self::prepared(|_| {}).await;
        servers.scenario.pass_until_agreed().await;
        while servers
            .scenario
            .standings()
            .iter()
            .any(|standing| !standing.is_connected)
        {
            sleep(Duration::from_millis(5)).await;
        }
        servers
    }

    /// Slots pass, each with swaps, each confirmed at once and finalized in time; the market shows each of them.
    async fn pass(&mut self, slots: u32) {
        for _ in 0..slots {
            let slot = self.scenario.pass();
            self.scenario.confirm(slot);
            if slot > GENESIS + FINALITY {
                self.scenario
                    .status(slot - FINALITY, SlotStatus::Finalized, None);
            }
            self.scenario.agree().await;
        }
    }
}

/// Notes whether a market was ever not ready. Dropping it ends it.
struct Readiness {
    was_lost: Arc<AtomicBool>,
    watching: AbortHandle,
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Readiness {
    fn of(reader: Reader) -> Self {
        let was_lost = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&was_lost);
        let watching = tokio::spawn(async move {
            loop {
                lost.fetch_or(reader.not_ready().is_some(), Ordering::Relaxed);
                sleep(Duration::from_micros(500)).await;
            }
        });
        Self {
            was_lost,
            watching: watching.abort_handle(),
        }
    }

    fn was_kept(&self) {
        assert!(
            !self.was_lost.load(Ordering::Relaxed),
            "the market was not ready"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_down_and_comes_back_costs_nothing() {
    let mut servers = TwoServers::ready().await;
    let readiness = Readiness::of(servers.scenario.reader());
    servers.line.refuse(true);
    servers.line.cut();
    servers.pass(20).await;
    assert!(!servers.scenario.standings()[0].is_connected);
    servers.line.refuse(false);
    // That its stream is open is not enough: of what passes before its filter is in force it tells nothing.
    while servers.scenario.standings()[0].slot < servers.scenario.head {
        servers.pass(1).await;
        sleep(Duration::from_millis(20)).await;
    }
    // Now the other one.
    servers.scenario.link.refuse(true);
    servers.scenario.link.cut();
    servers.pass(20).await;
    readiness.was_kept();
    servers.scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_costs_nothing() {
    let mut servers = TwoServers::ready().await;
    let readiness = Readiness::of(servers.scenario.reader());
    // In the middle of a slot, of which the rest comes from the other one.
    let slot = servers.scenario.open(servers.scenario.head);
    let pool = servers.scenario.pool(0);
    servers.scenario.swap(slot, &pool, 7);
    servers.line.freeze(true);
    servers.scenario.swap(slot, &pool, 8);
    servers.scenario.seal(slot);
    servers.scenario.head = slot;
    servers.scenario.agree().await;
    servers.pass(20).await;
    readiness.was_kept();
    servers.line.freeze(false);
    servers.pass(20).await;
    readiness.was_kept();
    servers.scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_market_begins_with_the_newest_slots_though_a_server_is_a_minute_behind() {
    let mut servers = TwoServers::prepared(|other| {
        other.configure(|settings| settings.behind = A_MINUTE);
        let chain = other.chain();
        for slot in GENESIS..GENESIS + 300 {
            chain.pass(slot);
        }
    })
    .await;
    servers.scenario.pass_until_agreed().await;
    let passed = servers.scenario.head - GENESIS - 300;
    assert!(passed < 100, "it waited for {passed} slots");
    let readiness = Readiness::of(servers.scenario.reader());
    servers.pass(160).await;
    readiness.was_kept();
    let standings = servers.scenario.standings();
    let [behind, ahead] = &standings[..] else {
        panic!("{standings:?}");
    };
    assert_eq!(behind.taken, 0, "{standings:?}");
    assert!(ahead.taken >= 160, "{standings:?}");
    assert!(behind.slot + 100 < ahead.slot, "{standings:?}");
    servers.scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_chain_is_named_and_nothing_is_taken_from_it() {
    let mut servers = TwoServers::ready().await;
    let readiness = Readiness::of(servers.scenario.reader());
    servers.other.configure(|settings| settings.behind = 3 * 9);
    servers.pass(4).await;
    let first = servers.scenario.head + 1;
    servers
        .other
        .configure(|settings| settings.rival_from = Some(first));
    servers.pass(80).await;
    // What it says of a slot comes after the market has shown it.
    let named = async {
        while servers.scenario.standings()[0].contradictions <= 10 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, named).await.expect("it is named");
    let standings = servers.scenario.standings();
    assert_eq!(standings[1].contradictions, 0, "{standings:?}");
    readiness.was_kept();
    servers.scenario.end().await;
}

/// Each slot is taken from either, so that nothing of two servers may be mixed; and the loser's time is known.
#[tokio::test(flavor = "multi_thread")]
async fn a_market_whose_servers_are_cut_in_turn_while_swaps_run_is_always_ready() {
    let mut servers = TwoServers::ready().await;
    let readiness = Readiness::of(servers.scenario.reader());
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..8 {
        let slots_until_cut = rng.random_range(5..10);
        let swaps_until_cut = rng.random_range(0..8);
        for slot_of_round in 0..30 {
            let scenario = &mut servers.scenario;
            let slot = scenario.open(scenario.head);
            for swap in 0..8 {
                if (slot_of_round, swap) == (slots_until_cut, swaps_until_cut) {
                    if round % 2 == 0 {
                        servers.line.cut()
                    } else {
                        scenario.link.cut()
                    }
                }
                let pool = scenario.pool(rng.random_range(0..scenario.exchange.pools.len()));
                scenario.swap(slot, &pool, rng.random_range(1..1_000));
                sleep(Duration::from_millis(2)).await;
            }
            scenario.seal(slot);
            scenario.confirm(slot);
            scenario.head = slot;
        }
        servers.scenario.agree().await;
        while servers
            .scenario
            .standings()
            .iter()
            .any(|standing| !standing.is_connected)
        {
            servers.pass(1).await;
        }
    }
    readiness.was_kept();
    let standings = servers.scenario.standings();
    for standing in &standings {
        assert!(
            standing.taken > 20 && standing.followed > 20,
            "{standings:?}"
        );
        assert!(standing.behind > Duration::ZERO, "{standings:?}");
        assert_eq!(standing.contradictions, 0, "{standings:?}");
    }
    servers.scenario.end().await;
}

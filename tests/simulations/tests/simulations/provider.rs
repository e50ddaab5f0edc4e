//! Start of a market at a provider that refuses, loses and delays calls and limits their answers.

use std::time::Duration;

use sluice_harness::market::{MarketHarness, settings};
use sluice_market::{NotReady, Settings, Status};
use sluice_testkit::{
    population::Population,
    rpc_node::{Fault, Provider, ProviderCounts, RpcNode},
    running_chain::{Running, RunningChain},
};
use tokio::time::{sleep, timeout};

/// Slot in which the chain begins.
const SLOT: u64 = 1_000;

/// A twentieth of a slot of the chain: the market waits for slots before and after it reads.
const SLOT_TIME: Duration = Duration::from_millis(20);

/// A provider's 40 seconds, 400 times as fast. What the market waits for is not faster, so that faults cost more than they would
/// at a provider: with its 40 seconds, in virtual time, its own tests have a read of 200,000 pools.
const SLOWEST: Duration = Duration::from_millis(100);

/// No start takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(240);

const POOLS: u64 = 2_000;

/// Without faults: it is slow, takes few calls at a time, and its lists are short.
fn undisturbed() -> Provider {
    Provider {
        refuses_one_in: 0,
        drops_one_in: 0,
        slowest: SLOWEST,
        parallel: 8,
        most_listed: 500,
        seed: 7,
    }
}

fn faulty() -> Provider {
    Provider {
        refuses_one_in: 3,
        drops_one_in: 50,
        ..undisturbed()
    }
}

struct World {
    node: RpcNode,
    chain: RunningChain,
}

impl World {
    async fn of(pools: u64) -> Self {
        let population = Population {
            pools,
            per_pair: 1,
            quote_tokens: 1,
        };
        let node = RpcNode::holding(population.accounts(SLOT)).await;
        let node = node.expect("a port is free");
        node.reach(SLOT);
        let chain = RunningChain::start(node.clone(), Running::at_once(SLOT, SLOT_TIME)).await;
        let chain = chain.expect("a port is free");
        Self { node, chain }
    }

    fn settings(&self) -> Settings {
        settings(&[self.chain.endpoint().url.to_string()], &self.node.url())
    }

    /// Starts a market and waits until it holds all pools; the reasons that it gave until then.
    async fn start(&self, settings: Settings, expected: usize) -> Vec<String> {
        let market = MarketHarness::start(settings);
        let mut reasons: Vec<String> = Vec::new();
        let ready = async {
            loop {
                match market.market().status() {
                    Status::Ready {
                        pools, incomplete, ..
                    } => {
                        assert_eq!((pools, incomplete), (expected, 0));
                        return;
                    }
                    Status::NotReady(NotReady { reason, .. })
                        if reasons.last() != Some(&reason) =>
                    {
                        reasons.push(reason);
                    }
                    Status::NotReady(_) => {}
                }
                sleep(Duration::from_millis(1)).await;
            }
        };
        if timeout(PATIENCE, ready).await.is_err() {
            panic!("not ready: {:?}", reasons.last());
        }
        market.stop().await;
        reasons
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_provider_cost_the_calls_that_they_hit_and_no_more() {
    let world = World::of(POOLS).await;
    world.node.provide_by(undisturbed());
    world.start(world.settings(), 2_000).await;
    let counts = world.node.provided();
    assert_eq!((counts.refused, counts.dropped), (0, 0));
    assert_eq!(counts.too_long, 1, "the whole list is asked for once");

    world.node.provide_by(faulty());
    let reasons = world.start(world.settings(), 2_000).await;
    let counts = world.node.provided();
    // 256 parts of the list and 61 calls for accounts, and no more of them than were lost or refused.
    let needed = 1 + 256 + 61;
    assert!(counts.refused > needed / 3, "{counts:?}");
    assert!(counts.dropped > 0, "{counts:?}");
    assert!(counts.too_long >= 1, "{counts:?}");
    let ProviderCounts {
        passed,
        dropped,
        too_long,
        ..
    } = counts;
    assert_eq!(passed, needed - 1 + dropped + too_long, "{counts:?}");
    // Calls are fewer while they are refused: without that, most would meet a provider with no room for them.
    assert!(counts.crowded < needed, "{counts:?}");
    let said = |words: &str| reasons.iter().any(|reason| reason.contains(words));
    assert!(said("listing the pools"), "{reasons:?}");
    assert!(said(" of 8003 accounts"), "{reasons:?}");
    assert!(said(" s left"), "{reasons:?}");
    assert!(world.node.not_understood().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_come_is_asked_for_again_and_then_in_parts() {
    let world = World::of(300).await;
    // Longer than the market waits.
    let slow = Fault::Slow(Duration::from_secs(30));
    world.node.fail([slow.clone(), slow]);
    let mut settings = world.settings();
    settings.read_limits.idle_timeout = Duration::from_secs(1);
    let reasons = world.start(settings, 300).await;
    let said = |words: &str| reasons.iter().any(|reason| reason.contains(words));
    assert!(said("the node answers too late"), "{reasons:?}");
    // How many of the parts are there when the market is first looked at is the machine's matter.
    assert!(said(" of 256 calls"), "{reasons:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_takes_long_is_waited_for_while_it_comes() {
    const PAUSE: Duration = Duration::from_millis(300);
    let world = World::of(300).await;
    world.node.fail([Fault::Drips(PAUSE)]);
    let mut settings = world.settings();
    // Whole it takes three times as long as anything may be silent.
    settings.read_limits.idle_timeout = Duration::from_secs(1);
    let reasons = world.start(settings, 300).await;
    let late = reasons.iter().find(|reason| reason.contains("too late"));
    assert_eq!(late, None, "{reasons:?}");
    assert_eq!(world.node.count("getProgramAccounts"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_whole_by_its_deadline_is_asked_for_again() {
    const PAUSE: Duration = Duration::from_millis(500);
    let world = World::of(300).await;
    world.node.fail([Fault::Drips(PAUSE)]);
    let mut settings = world.settings();
    settings.read_limits.answer_timeout = Duration::from_secs(2);
    let reasons = world.start(settings, 300).await;
    let said = |words: &str| reasons.iter().any(|reason| reason.contains(words));
    assert!(said("the node answers too late"), "{reasons:?}");
    assert!(world.node.count("getProgramAccounts") > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_list_accounts_is_named_with_what_can_be_done() {
    let world = World::of(1).await;
    for (fault, words) in [
        (
            Fault::Refused(-32601, "Method not found".to_owned()),
            "set chain.rpc-url to a node that serves it",
        ),
        (Fault::Http(403), "check the key in chain.rpc-url"),
    ] {
        world.node.fail(vec![fault; 2]);
        let reasons = world.start(world.settings(), 1).await;
        let said = reasons.iter().any(|reason| reason.contains(words));
        assert!(said, "{words} is not among {reasons:?}");
    }
}

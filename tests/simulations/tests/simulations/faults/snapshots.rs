//! Starts: accounts read from the node against those of the stream.

use std::time::Duration;

use sluice_testkit::{rpc_node::Fault, scripted_chain::NodeSlot};
use tokio::time::sleep;

use super::{Scenario, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn a_market_starts_beside_a_quiet_chain() {
    let mut scenario = Scenario::start().await;
    scenario.pass_until_agreed().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_market_that_has_not_joined_serves_no_view() {
    let scenario = Scenario::start().await;
    scenario.subscribed(1).await;
    sleep(Duration::from_millis(100)).await;
    assert!(scenario.reader().not_ready().is_some());
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_behind_the_stream_is_waited_for() {
    let mut scenario = Scenario::start().await;
    scenario.chain.lock().hold_node();
    scenario.subscribed(1).await;
    for _ in 0..20 {
        let slot = scenario.pass();
        scenario.confirm(slot);
        sleep(Duration::from_millis(10)).await;
    }
    assert!(scenario.reader().not_ready().is_some());
    scenario.chain.lock().node = NodeSlot::OfTheStream;
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_answer_is_brought_up_to_date_by_the_stream() {
    let mut scenario = Scenario::start().await;
    scenario.subscribed(1).await;
    for _ in 0..5 {
        scenario.pass();
    }
    // The node stays where the stream was long ago, the stream goes on.
    scenario.chain.lock().node = NodeSlot::Fixed(scenario.head);
    for _ in 0..30 {
        scenario.pass();
        sleep(Duration::from_millis(4)).await;
    }
    scenario.confirm(scenario.head);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_newer_than_the_stream_waits_for_its_slot() {
    let mut scenario = Scenario::start().await;
    scenario.subscribed(1).await;
    // Slots that the node knows, and of which the stream is yet to report.
    let mut slots = Vec::new();
    let mut parent = scenario.head;
    let pool = scenario.pool(0);
    for _ in 0..12 {
        let slot = scenario.open_unreported(parent, 0);
        let clock = sluice_testkit::scripted_pools::clock(slot, scenario.epoch);
        let mut writes = vec![scenario.set_unreported(slot, cpmm::ids::CLOCK, clock)];
        for (key, content) in scenario.swap_writes(slot, &pool, 13) {
            writes.push(scenario.set_unreported(slot, key, content));
        }
        slots.push((slot, parent, writes));
        parent = slot;
    }
    scenario.chain.lock().node = NodeSlot::Fixed(parent);
    for (slot, _, writes) in slots {
        for write in writes {
            scenario.report_write(slot, write);
        }
        scenario.seal(slot);
        sleep(Duration::from_millis(10)).await;
    }
    scenario.confirm(parent);
    scenario.head = parent;
    scenario.chain.lock().node = NodeSlot::OfTheStream;
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_different_slots_are_brought_to_one() {
    let mut scenario = Scenario::start().await;
    scenario.node.drift(true);
    let pools = [0, 1, 2, 3].map(|index| scenario.pool(index));
    for amount in 1..60 {
        let slot = scenario.open(scenario.head);
        for pool in &pools {
            scenario.swap(slot, pool, amount);
        }
        scenario.seal(slot);
        scenario.confirm(slot);
        scenario.head = slot;
        sleep(Duration::from_millis(3)).await;
    }
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_market_starts_in_the_middle_of_a_fork() {
    let mut scenario = Scenario::start().await;
    scenario.subscribed(1).await;
    let (mut left, mut right) = (scenario.head, scenario.head);
    for _ in 0..6 {
        left = scenario.pass_on(left);
        right = scenario.pass_on(right);
        sleep(Duration::from_millis(5)).await;
    }
    scenario.confirm(left);
    scenario.head = left;
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pools_that_come_and_go_during_the_start_are_neither_lost_nor_kept() {
    use sluice_testkit::{accounts::Content, scripted_pools::ScriptedPool};
    let mut scenario = Scenario::start().await;
    scenario.subscribed(1).await;
    let [a, _, fee, _] = scenario.exchange.tokens;
    for index in 0..10 {
        let pool = ScriptedPool::new(
            &format!("passing {index}"),
            scenario.exchange.configs[0],
            a,
            fee,
        );
        let slot = scenario.open(scenario.head);
        for (key, content) in pool.opening() {
            scenario.set(slot, key, content);
        }
        scenario.seal(slot);
        scenario.head = slot;
        scenario.confirm(slot);
        sleep(Duration::from_millis(5)).await;
        if index % 2 == 0 {
            let slot = scenario.open(scenario.head);
            scenario.set(slot, pool.pool, Content::Closed);
            scenario.seal(slot);
            scenario.head = slot;
        }
    }
    scenario.pass_until_agreed().await;
    assert_eq!(scenario.processed().pools.len(), 9);
    scenario.end().await;
}

/// The node fails in these ways, call after call, and the market starts all the same.
async fn starts_in_spite_of(faults: impl IntoIterator<Item = Fault>) {
    let mut scenario = Scenario::prepared(async |node, _| {
        node.fail(faults);
        Vec::new()
    })
    .await;
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_answers_with_http_errors_is_asked_again() {
    starts_in_spite_of([Fault::Http(502), Fault::Http(429), Fault::Http(500)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_refuses_is_asked_again() {
    let unhealthy = Fault::Refused(-32005, "Node is behind by 42 slots".to_owned());
    starts_in_spite_of([unhealthy.clone(), unhealthy]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hangs_up_is_asked_again() {
    starts_in_spite_of([Fault::HangsUp, Fault::HangsUp]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_talks_nonsense_is_asked_again() {
    starts_in_spite_of([Fault::Garbage, Fault::Garbage]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_node_is_joined_to_the_stream_that_went_on() {
    let slow = Fault::Slow(Duration::from_millis(250));
    starts_in_spite_of([slow.clone(), slow.clone(), slow]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_lost_during_the_start_starts_over() {
    let mut scenario = Scenario::start().await;
    for lost in 1..4 {
        scenario.subscribed(lost).await;
        scenario.pass();
        scenario.pass();
        sleep(Duration::from_millis(10)).await;
        scenario.close();
    }
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

//! Writes out of order, interleaved, repeated, late.

use std::time::Duration;

use super::{Scenario, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_arrive_in_another_order_count_in_their_own() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(0);
    for _ in 0..5 {
        let slot = scenario.open(scenario.head);
        let mut writes = Vec::new();
        for amount in [3, 30, 300] {
            for (key, content) in scenario.swap_writes(slot, &pool, amount) {
                writes.push(scenario.set_unreported(slot, key, content));
            }
        }
        for write in writes.into_iter().rev() {
            scenario.report_write(slot, write);
        }
        scenario.seal(slot);
        scenario.head = slot;
        scenario.agree().await;
    }
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interleaved_writes_of_two_slots_stay_apart() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(0);
    let parent = scenario.open(scenario.head);
    let mut waiting: Vec<_> = scenario
        .swap_writes(parent, &pool, 11)
        .into_iter()
        .map(|(key, content)| scenario.set_unreported(parent, key, content))
        .collect();
    let child = scenario.open(parent);
    for (key, content) in scenario.swap_writes(child, &pool, 200) {
        scenario.set(child, key, content);
        scenario.report_write(parent, waiting.remove(0));
    }
    scenario.agree().await;
    scenario.seal(parent);
    scenario.agree().await;
    scenario.seal(child);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_writes_of_an_open_slot_count_once() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(0);
    let slot = scenario.open(scenario.head);
    let mut reported = Vec::new();
    for amount in [1, 2] {
        for (key, content) in scenario.swap_writes(slot, &pool, amount) {
            let write = scenario.set_unreported(slot, key, content);
            scenario.report_write(slot, write.clone());
            reported.push(write);
        }
    }
    // The older writes come last.
    for write in reported.into_iter().rev() {
        scenario.report_write(slot, write);
    }
    scenario.seal(slot);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_repeated_after_their_slot_was_complete_do_no_harm() {
    let mut scenario = Scenario::ready().await;
    let slot = scenario.pass();
    scenario.agree().await;
    let writes = scenario.chain.lock().tree.writes(slot).to_vec();
    for write in writes {
        scenario.report_write(slot, write);
    }
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_comes_after_its_slot_was_complete_is_not_lost() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(0);
    let slot = scenario.pass();
    scenario.agree().await;
    let writes = scenario.swap_writes(slot, &pool, 50);
    let writes = writes.map(|(key, content)| scenario.set_unreported(slot, key, content));
    // Until it has come, the slot without it is all that can be known.
    scenario.chain.lock().allow(slot);
    for write in writes {
        scenario.report_write(slot, write);
    }
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_reader_ever_sees_half_a_swap() {
    let mut scenario = Scenario::ready().await;
    let pools = [0, 1, 2, 3].map(|index| scenario.pool(index));
    for amount in 1..150 {
        let slot = scenario.open(scenario.head);
        for pool in &pools {
            scenario.swap(slot, pool, amount);
            scenario.swap(slot, pool, amount * 7);
        }
        scenario.seal(slot);
        scenario.head = slot;
        tokio::time::sleep(Duration::from_micros(700)).await;
        if amount % 3 == 0 {
            scenario.confirm(slot);
        }
    }
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_that_a_reader_holds_does_not_change() {
    let mut scenario = Scenario::ready().await;
    scenario.pass();
    scenario.agree().await;
    let held = scenario.reader().hold();
    let before = held.moment();
    for _ in 0..50 {
        scenario.pass();
        scenario.confirm(scenario.head);
    }
    scenario.agree().await;
    assert_eq!(held.moment(), before);
    scenario.end().await;
}

//! Dead slots, and those that build on them.

use super::{Scenario, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_head_falls_back_to_its_parent() {
    let mut scenario = Scenario::ready().await;
    scenario.pass();
    let head = scenario.pass();
    scenario.agree().await;
    scenario.kill(head);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_leaf_beside_the_head_changes_nothing() {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    let leaf = scenario.pass_on(parent);
    scenario.pass();
    scenario.kill(leaf);
    scenario.agree().await;
    scenario.pass();
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_slot_takes_its_descendants_along() {
    let mut scenario = Scenario::ready().await;
    let kept = scenario.pass();
    let dead = scenario.pass();
    scenario.pass();
    scenario.pass();
    scenario.agree().await;
    scenario.kill(dead);
    scenario.agree().await;
    scenario.head = kept;
    scenario.pass();
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_dies_before_it_is_complete_never_shows() {
    let mut scenario = Scenario::ready().await;
    let slot = scenario.open(scenario.head);
    let pool = scenario.pool(0);
    scenario.swap(slot, &pool, 77);
    scenario.kill(slot);
    scenario.agree().await;
    scenario.pass();
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_said_to_be_complete_after_its_death_never_shows() {
    let mut scenario = Scenario::ready().await;
    let slot = scenario.open(scenario.head);
    let pool = scenario.pool(0);
    scenario.swap(slot, &pool, 77);
    scenario.kill(slot);
    scenario.seal(slot);
    scenario.pass();
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_dies_after_its_sibling_was_confirmed_changes_nothing() {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    let confirmed = scenario.pass_on(parent);
    let loser = scenario.pass_on(parent);
    scenario.confirm(confirmed);
    scenario.agree().await;
    scenario.kill(loser);
    scenario.head = confirmed;
    scenario.pass();
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_builds_on_a_dead_one_never_shows() {
    let mut scenario = Scenario::ready().await;
    let dead = scenario.pass_on(scenario.head);
    scenario.kill(dead);
    scenario.agree().await;
    scenario.pass_on(dead);
    scenario.agree().await;
    scenario.pass();
    scenario.agree().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_reported_twice_is_one_death() {
    let mut scenario = Scenario::ready().await;
    let head = scenario.pass_on(scenario.head);
    scenario.agree().await;
    scenario.kill(head);
    scenario.kill(head);
    scenario.agree().await;
    scenario.pass();
    scenario.kill(head);
    scenario.pass();
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_a_dead_slot_shows_what_it_was_before() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(2);
    let dead = scenario.open(scenario.head);
    scenario.change(dead, &pool, |pool| pool.open_time = 9_999_999_999);
    scenario.set(dead, pool.config, sluice_testkit::scripted_pools::config(1));
    scenario.seal(dead);
    scenario.agree().await;
    scenario.kill(dead);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

//! Statuses that come twice, early, late, without a parent, or not at all.

use sluice_geyser::SlotStatus;

use super::{Scenario, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn statuses_reported_twice_change_nothing() {
    let mut scenario = Scenario::ready().await;
    for _ in 0..3 {
        let slot = scenario.pass();
        let parent = scenario.chain.lock().tree.parent(slot);
        scenario.seal(slot);
        scenario.status(slot, SlotStatus::Processed, None);
        for _ in 0..2 {
            scenario.confirm(slot);
            scenario.status(slot, SlotStatus::Finalized, parent);
            scenario.status(slot, SlotStatus::Confirmed, parent);
        }
        scenario.agree().await;
    }
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_of_building_a_block_mean_nothing_in_any_order() {
    let mut scenario = Scenario::ready().await;
    let slot = scenario.open(scenario.head);
    let statuses = [
        SlotStatus::Completed,
        SlotStatus::FirstShredReceived,
        SlotStatus::CreatedBank,
    ];
    for status in statuses {
        scenario.status(slot, status, None);
    }
    let pool = scenario.pool(1);
    scenario.swap(slot, &pool, 9);
    scenario.agree().await;
    scenario.seal(slot);
    for status in statuses {
        scenario.status(slot, status, None);
    }
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_confirmed_before_it_is_complete_shows_when_it_is() {
    let mut scenario = Scenario::ready().await;
    let slot = scenario.open(scenario.head);
    let pool = scenario.pool(0);
    scenario.swap(slot, &pool, 9);
    scenario.confirm(slot);
    scenario.agree().await;
    scenario.seal(slot);
    scenario.agree().await;
    assert_eq!(scenario.chain.lock().statuses.confirmed_slot(), slot);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_confirmed_before_anything_was_reported_of_it_shows_when_it_is_complete() {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    let slot = scenario.open_unreported(parent, 0);
    scenario.confirm(slot);
    scenario.status(slot, SlotStatus::CreatedBank, Some(parent));
    let clock = sluice_testkit::scripted_pools::clock(slot, scenario.epoch);
    scenario.set(slot, cpmm::ids::CLOCK, clock);
    scenario.seal(slot);
    scenario.agree().await;
    assert_eq!(scenario.chain.lock().statuses.confirmed_slot(), slot);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_confirmations_move_the_confirmed_view_only_forward() {
    let mut scenario = Scenario::ready().await;
    let slots = [0; 12].map(|_| scenario.pass());
    scenario.agree().await;
    for index in [2, 7, 5, 3, 11, 9] {
        scenario.confirm(slots[index]);
        scenario.agree().await;
    }
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_whose_confirmation_never_comes_is_confirmed_by_its_descendant() {
    let mut scenario = Scenario::ready().await;
    let slots = [0; 4].map(|_| scenario.pass());
    scenario.confirm(slots[3]);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_of_a_descendant_that_is_not_complete_confirms_what_is() {
    let mut scenario = Scenario::ready().await;
    scenario.pass();
    let complete = scenario.pass();
    let open = scenario.open(complete);
    scenario.confirm(open);
    scenario.agree().await;
    assert_eq!(scenario.chain.lock().statuses.confirmed_slot(), complete);
    scenario.seal(open);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn finalized_without_confirmed_confirms() {
    let mut scenario = Scenario::ready().await;
    let slot = scenario.pass();
    scenario.status(slot, SlotStatus::Finalized, None);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_without_a_parent_waits_until_it_is_named() {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    let slot = scenario.open_unreported(parent, 0);
    let clock = sluice_testkit::scripted_pools::clock(slot, scenario.epoch);
    scenario.set(slot, cpmm::ids::CLOCK, clock);
    let pool = scenario.pool(0);
    scenario.swap(slot, &pool, 5);
    scenario.status(slot, SlotStatus::Processed, None);
    scenario.agree().await;
    scenario.status(slot, SlotStatus::Processed, Some(parent));
    scenario.agree().await;
    assert_eq!(scenario.chain.lock().statuses.processed_slot(), slot);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_reported_complete_before_their_parents_show_together_with_them() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(0);
    let mut slots = Vec::new();
    for amount in 1..4 {
        let slot = scenario.open(scenario.head);
        scenario.swap(slot, &pool, amount);
        scenario.head = slot;
        slots.push(slot);
    }
    for slot in slots.iter().rev() {
        scenario.seal(*slot);
        scenario.agree().await;
    }
    assert_eq!(
        scenario.chain.lock().statuses.processed_slot(),
        scenario.head
    );
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_is_never_reported_complete_ends_in_a_new_start() {
    let mut scenario = Scenario::ready().await;
    let lost = scenario.open(scenario.head);
    let pool = scenario.pool(0);
    scenario.swap(lost, &pool, 5);
    scenario.head = lost;
    for _ in 0..30 {
        scenario.pass();
    }
    assert!(!scenario.not_ready().await.is_empty());
    scenario.seal(lost);
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

//! Statuses that come twice, early, late, without a parent, or not at all.

use sluice_geyser::SlotStatus;

use super::{Scene, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn statuses_told_twice_change_nothing() {
    let mut scene = Scene::ready().await;
    for _ in 0..3 {
        let slot = scene.pass();
        let parent = scene.world.lock().chain.parent(slot);
        scene.seal(slot);
        scene.status(slot, SlotStatus::Processed, None);
        for _ in 0..2 {
            scene.confirm(slot);
            scene.status(slot, SlotStatus::Finalized, parent);
            scene.status(slot, SlotStatus::Confirmed, parent);
        }
        scene.agree().await;
    }
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_of_building_a_block_mean_nothing_in_any_order() {
    let mut scene = Scene::ready().await;
    let slot = scene.open(scene.head);
    let stages = [
        SlotStatus::Completed,
        SlotStatus::FirstShredReceived,
        SlotStatus::CreatedBank,
    ];
    for stage in stages {
        scene.status(slot, stage, None);
    }
    let pool = scene.pool(1);
    scene.swap(slot, &pool, 9);
    scene.agree().await;
    scene.seal(slot);
    for stage in stages {
        scene.status(slot, stage, None);
    }
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_confirmed_before_it_is_complete_shows_when_it_is() {
    let mut scene = Scene::ready().await;
    let slot = scene.open(scene.head);
    let pool = scene.pool(0);
    scene.swap(slot, &pool, 9);
    scene.confirm(slot);
    scene.agree().await;
    scene.seal(slot);
    scene.agree().await;
    assert_eq!(scene.world.lock().told.confirmed_slot(), slot);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_confirmed_before_anything_was_told_of_it_shows_when_it_is_complete() {
    let mut scene = Scene::ready().await;
    let parent = scene.head;
    let slot = scene.open_untold(parent, 0);
    scene.confirm(slot);
    scene.status(slot, SlotStatus::CreatedBank, Some(parent));
    let clock = sluice_testkit::cast::clock(slot, scene.epoch);
    scene.set(slot, cpmm::ids::CLOCK, clock);
    scene.seal(slot);
    scene.agree().await;
    assert_eq!(scene.world.lock().told.confirmed_slot(), slot);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_confirmations_move_the_confirmed_view_only_forward() {
    let mut scene = Scene::ready().await;
    let slots = [0; 12].map(|_| scene.pass());
    scene.agree().await;
    for index in [2, 7, 5, 3, 11, 9] {
        scene.confirm(slots[index]);
        scene.agree().await;
    }
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_whose_confirmation_never_comes_is_confirmed_by_its_descendant() {
    let mut scene = Scene::ready().await;
    let slots = [0; 4].map(|_| scene.pass());
    scene.confirm(slots[3]);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_of_a_descendant_that_is_not_complete_confirms_what_is() {
    let mut scene = Scene::ready().await;
    scene.pass();
    let complete = scene.pass();
    let open = scene.open(complete);
    scene.confirm(open);
    scene.agree().await;
    assert_eq!(scene.world.lock().told.confirmed_slot(), complete);
    scene.seal(open);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn finalized_without_confirmed_confirms() {
    let mut scene = Scene::ready().await;
    let slot = scene.pass();
    scene.status(slot, SlotStatus::Finalized, None);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_without_a_parent_waits_until_it_is_named() {
    let mut scene = Scene::ready().await;
    let parent = scene.head;
    let slot = scene.open_untold(parent, 0);
    let clock = sluice_testkit::cast::clock(slot, scene.epoch);
    scene.set(slot, cpmm::ids::CLOCK, clock);
    let pool = scene.pool(0);
    scene.swap(slot, &pool, 5);
    scene.status(slot, SlotStatus::Processed, None);
    scene.agree().await;
    scene.status(slot, SlotStatus::Processed, Some(parent));
    scene.agree().await;
    assert_eq!(scene.world.lock().told.processed_slot(), slot);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_told_complete_before_their_parents_show_together_with_them() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(0);
    let mut slots = Vec::new();
    for amount in 1..4 {
        let slot = scene.open(scene.head);
        scene.swap(slot, &pool, amount);
        scene.head = slot;
        slots.push(slot);
    }
    for slot in slots.iter().rev() {
        scene.seal(*slot);
        scene.agree().await;
    }
    assert_eq!(scene.world.lock().told.processed_slot(), scene.head);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_is_never_told_complete_ends_in_a_new_start() {
    let mut scene = Scene::ready().await;
    let lost = scene.open(scene.head);
    let pool = scene.pool(0);
    scene.swap(lost, &pool, 5);
    scene.head = lost;
    for _ in 0..30 {
        scene.pass();
    }
    assert!(!scene.not_ready().await.is_empty());
    scene.seal(lost);
    scene.settle().await;
    scene.end().await;
}

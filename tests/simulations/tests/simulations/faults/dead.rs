//! Slots that die.

use super::{Scene, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_head_falls_back_to_its_parent() {
    let mut scene = Scene::ready().await;
    scene.pass();
    let head = scene.pass();
    scene.agree().await;
    scene.kill(head);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_leaf_beside_the_head_changes_nothing() {
    let mut scene = Scene::ready().await;
    let parent = scene.head;
    let leaf = scene.pass_on(parent);
    scene.pass();
    scene.kill(leaf);
    scene.agree().await;
    scene.pass();
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_slot_takes_its_descendants_along() {
    let mut scene = Scene::ready().await;
    let kept = scene.pass();
    let dead = scene.pass();
    scene.pass();
    scene.pass();
    scene.agree().await;
    scene.kill(dead);
    scene.agree().await;
    scene.head = kept;
    scene.pass();
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_dies_before_it_is_complete_never_shows() {
    let mut scene = Scene::ready().await;
    let slot = scene.open(scene.head);
    let pool = scene.pool(0);
    scene.swap(slot, &pool, 77);
    scene.kill(slot);
    scene.agree().await;
    scene.pass();
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_said_to_be_complete_after_its_death_never_shows() {
    let mut scene = Scene::ready().await;
    let slot = scene.open(scene.head);
    let pool = scene.pool(0);
    scene.swap(slot, &pool, 77);
    scene.kill(slot);
    scene.seal(slot);
    scene.pass();
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_dies_after_its_sibling_was_confirmed_changes_nothing() {
    let mut scene = Scene::ready().await;
    let parent = scene.head;
    let confirmed = scene.pass_on(parent);
    let loser = scene.pass_on(parent);
    scene.confirm(confirmed);
    scene.agree().await;
    scene.kill(loser);
    scene.head = confirmed;
    scene.pass();
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_builds_on_a_dead_one_never_shows() {
    let mut scene = Scene::ready().await;
    let dead = scene.pass_on(scene.head);
    scene.kill(dead);
    scene.agree().await;
    scene.pass_on(dead);
    scene.agree().await;
    scene.pass();
    scene.agree().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_told_twice_is_one_death() {
    let mut scene = Scene::ready().await;
    let head = scene.pass_on(scene.head);
    scene.agree().await;
    scene.kill(head);
    scene.kill(head);
    scene.agree().await;
    scene.pass();
    scene.kill(head);
    scene.pass();
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_a_dead_slot_shows_what_it_was_before() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(2);
    let dead = scene.open(scene.head);
    scene.change(dead, &pool, |pool| pool.open_time = 9_999_999_999);
    scene.set(dead, pool.config, sluice_testkit::cast::config(1));
    scene.seal(dead);
    scene.agree().await;
    scene.kill(dead);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

//! Writes out of order, interleaved, repeated, late.

use std::time::Duration;

use super::{Scene, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_arrive_in_another_order_count_in_their_own() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(0);
    for _ in 0..5 {
        let slot = scene.open(scene.head);
        let mut writes = Vec::new();
        for amount in [3, 30, 300] {
            for (key, content) in scene.swap_writes(slot, &pool, amount) {
                writes.push(scene.set_untold(slot, key, content));
            }
        }
        for write in writes.into_iter().rev() {
            scene.tell_write(slot, write);
        }
        scene.seal(slot);
        scene.head = slot;
        scene.agree().await;
    }
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interleaved_writes_of_two_slots_stay_apart() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(0);
    let parent = scene.open(scene.head);
    let mut waiting: Vec<_> = scene
        .swap_writes(parent, &pool, 11)
        .into_iter()
        .map(|(key, content)| scene.set_untold(parent, key, content))
        .collect();
    let child = scene.open(parent);
    for (key, content) in scene.swap_writes(child, &pool, 200) {
        scene.set(child, key, content);
        scene.tell_write(parent, waiting.remove(0));
    }
    scene.agree().await;
    scene.seal(parent);
    scene.agree().await;
    scene.seal(child);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_writes_of_an_open_slot_count_once() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(0);
    let slot = scene.open(scene.head);
    let mut told = Vec::new();
    for amount in [1, 2] {
        for (key, content) in scene.swap_writes(slot, &pool, amount) {
            let write = scene.set_untold(slot, key, content);
            scene.tell_write(slot, write.clone());
            told.push(write);
        }
    }
    // The older writes come last.
    for write in told.into_iter().rev() {
        scene.tell_write(slot, write);
    }
    scene.seal(slot);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_repeated_after_their_slot_was_complete_do_no_harm() {
    let mut scene = Scene::ready().await;
    let slot = scene.pass();
    scene.agree().await;
    let writes = scene.world.lock().chain.writes(slot).to_vec();
    for write in writes {
        scene.tell_write(slot, write);
    }
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_comes_after_its_slot_was_complete_is_not_lost() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(0);
    let slot = scene.pass();
    scene.agree().await;
    let writes = scene.swap_writes(slot, &pool, 50);
    let writes = writes.map(|(key, content)| scene.set_untold(slot, key, content));
    // Until it has come, the slot without it is all that can be known.
    scene.world.lock().allow(slot);
    for write in writes {
        scene.tell_write(slot, write);
    }
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_reader_ever_sees_half_a_swap() {
    let mut scene = Scene::ready().await;
    let pools = [0, 1, 2, 3].map(|index| scene.pool(index));
    for amount in 1..150 {
        let slot = scene.open(scene.head);
        for pool in &pools {
            scene.swap(slot, pool, amount);
            scene.swap(slot, pool, amount * 7);
        }
        scene.seal(slot);
        scene.head = slot;
        tokio::time::sleep(Duration::from_micros(700)).await;
        if amount % 3 == 0 {
            scene.confirm(slot);
        }
    }
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_that_a_reader_holds_does_not_change() {
    let mut scene = Scene::ready().await;
    scene.pass();
    scene.agree().await;
    let held = scene.reader().hold();
    let before = held.moment();
    for _ in 0..50 {
        scene.pass();
        scene.confirm(scene.head);
    }
    scene.agree().await;
    assert_eq!(held.moment(), before);
    scene.end().await;
}

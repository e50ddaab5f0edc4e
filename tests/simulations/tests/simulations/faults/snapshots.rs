//! Starts: what the node says, against what the stream says.

use std::time::Duration;

use sluice_testkit::{node::Fault, world::NodeSlot};
use tokio::time::sleep;

use super::{Scene, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn a_market_starts_beside_a_quiet_chain() {
    let mut scene = Scene::start().await;
    scene.settle().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_market_that_has_not_joined_serves_no_view() {
    let scene = Scene::start().await;
    scene.subscribed(1).await;
    sleep(Duration::from_millis(100)).await;
    assert!(scene.reader().not_ready().is_some());
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_behind_the_stream_is_waited_for() {
    let mut scene = Scene::start().await;
    scene.world.lock().hold_node();
    scene.subscribed(1).await;
    for _ in 0..20 {
        let slot = scene.pass();
        scene.confirm(slot);
        sleep(Duration::from_millis(10)).await;
    }
    assert!(scene.reader().not_ready().is_some());
    scene.world.lock().node = NodeSlot::OfTheStream;
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_answer_is_brought_up_to_date_by_the_stream() {
    let mut scene = Scene::start().await;
    scene.subscribed(1).await;
    for _ in 0..5 {
        scene.pass();
    }
    // The node stays where the stream was long ago, the stream goes on.
    scene.world.lock().node = NodeSlot::Fixed(scene.head);
    for _ in 0..30 {
        scene.pass();
        sleep(Duration::from_millis(4)).await;
    }
    scene.confirm(scene.head);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_newer_than_the_stream_waits_for_its_slot() {
    let mut scene = Scene::start().await;
    scene.subscribed(1).await;
    // Slots that the node knows, and of which the stream is yet to tell.
    let mut slots = Vec::new();
    let mut parent = scene.head;
    let pool = scene.pool(0);
    for _ in 0..12 {
        let slot = scene.open_untold(parent, 0);
        let clock = sluice_testkit::cast::clock(slot, scene.epoch);
        let mut writes = vec![scene.set_untold(slot, cpmm::ids::CLOCK, clock)];
        for (key, content) in scene.swap_writes(slot, &pool, 13) {
            writes.push(scene.set_untold(slot, key, content));
        }
        slots.push((slot, parent, writes));
        parent = slot;
    }
    scene.world.lock().node = NodeSlot::Fixed(parent);
    for (slot, _, writes) in slots {
        for write in writes {
            scene.tell_write(slot, write);
        }
        scene.seal(slot);
        sleep(Duration::from_millis(10)).await;
    }
    scene.confirm(parent);
    scene.head = parent;
    scene.world.lock().node = NodeSlot::OfTheStream;
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_different_slots_are_brought_to_one() {
    let mut scene = Scene::start().await;
    scene.node.drift(true);
    let pools = [0, 1, 2, 3].map(|index| scene.pool(index));
    for amount in 1..60 {
        let slot = scene.open(scene.head);
        for pool in &pools {
            scene.swap(slot, pool, amount);
        }
        scene.seal(slot);
        scene.confirm(slot);
        scene.head = slot;
        sleep(Duration::from_millis(3)).await;
    }
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_market_starts_in_the_middle_of_a_fork() {
    let mut scene = Scene::start().await;
    scene.subscribed(1).await;
    let (mut left, mut right) = (scene.head, scene.head);
    for _ in 0..6 {
        left = scene.pass_on(left);
        right = scene.pass_on(right);
        sleep(Duration::from_millis(5)).await;
    }
    scene.confirm(left);
    scene.head = left;
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pools_that_come_and_go_during_the_start_are_neither_lost_nor_kept() {
    use sluice_testkit::{accounts::Content, cast::Actor};
    let mut scene = Scene::start().await;
    scene.subscribed(1).await;
    let [a, _, fee, _] = scene.cast.tokens;
    for index in 0..10 {
        let pool = Actor::new(&format!("passing {index}"), scene.cast.configs[0], a, fee);
        let slot = scene.open(scene.head);
        for (key, content) in pool.opening() {
            scene.set(slot, key, content);
        }
        scene.seal(slot);
        scene.head = slot;
        scene.confirm(slot);
        sleep(Duration::from_millis(5)).await;
        if index % 2 == 0 {
            let slot = scene.open(scene.head);
            scene.set(slot, pool.pool, Content::Closed);
            scene.seal(slot);
            scene.head = slot;
        }
    }
    scene.settle().await;
    assert_eq!(scene.processed().pools.len(), 9);
    scene.end().await;
}

/// The node fails in these ways, call after call, and the market starts all the same.
async fn starts_in_spite_of(faults: impl IntoIterator<Item = Fault>) {
    let mut scene = Scene::staged(async |node, _| {
        node.fail(faults);
        Vec::new()
    })
    .await;
    scene.settle().await;
    scene.end().await;
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
    let mut scene = Scene::start().await;
    for lost in 1..4 {
        scene.subscribed(lost).await;
        scene.pass();
        scene.pass();
        sleep(Duration::from_millis(10)).await;
        scene.close();
    }
    scene.settle().await;
    scene.end().await;
}

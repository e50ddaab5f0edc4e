//! Streams that are lost and resumed.

use std::time::Duration;

use sluice_geyser::scripted::Code;
use sluice_testkit::server::Replay;
use tokio::time::sleep;

use super::Scene;

/// A market that has lost its stream while the chain went on, on two branches, with a slot half told before.
async fn lost(replay: Replay) -> (Scene, usize) {
    let mut scene = Scene::ready().await;
    scene.server.on_replay(replay);
    let confirmed = scene.pass();
    scene.confirm(confirmed);
    scene.pass();
    let pool = scene.pool(0);
    let half = scene.open(scene.head);
    let [first, rest @ ..] = scene.swap_writes(half, &pool, 41);
    scene.set(half, first.0, first.1);
    scene.agree().await;
    let calls = scene.node.calls().len();
    scene.fail(Code::Unavailable, "the server is going away");
    for (key, content) in rest {
        scene.set(half, key, content);
    }
    scene.seal(half);
    let fork = scene.pass_on(scene.head);
    scene.pass_on(fork);
    scene.head = half;
    scene.pass();
    (scene, calls)
}

/// The market resumes without asking the node again.
async fn resumes(replay: Replay) {
    let (scene, calls) = lost(replay).await;
    scene.agree().await;
    assert_eq!(
        scene.node.calls().len(),
        calls,
        "nothing was missed, so nothing is read"
    );
    let requests = scene.server.requests();
    assert_eq!(requests.len(), 2);
    let confirmed = scene.world.lock().told.confirmed_slot();
    assert_eq!(requests[1].from_slot, Some(confirmed));
    scene.end().await;
}

/// The market reads everything again.
async fn starts_over(replay: Replay) {
    let (mut scene, calls) = lost(replay).await;
    scene.settle().await;
    assert!(
        scene.node.calls().len() > calls,
        "a gap can only be closed by a snapshot"
    );
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_stream_is_resumed_where_it_was_confirmed() {
    resumes(Replay::Whole).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_of_only_the_last_writes_is_as_good() {
    resumes(Replay::LastWrites).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_from_another_validator_with_other_write_versions_is_as_good() {
    resumes(Replay::OtherVersions).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_window_that_is_gone_costs_a_snapshot() {
    let text = "broadcast from 5 is not available, last available: 9";
    starts_over(Replay::Refused(Code::OutOfRange, text.to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_replay_costs_a_snapshot() {
    let text = "from_slot is not supported";
    starts_over(Replay::Refused(Code::Internal, text.to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_catching_up_costs_a_snapshot() {
    let text = "failed to get replay response";
    starts_over(Replay::Refused(Code::Internal, text.to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_is_granted_and_never_comes_is_noticed() {
    starts_over(Replay::Nothing).await;
}

/// The one slot that was told in part builds on the confirmed one, so without the replay everything seems to be there.
#[tokio::test(flavor = "multi_thread")]
async fn half_a_slot_whose_replay_never_comes_is_not_taken_for_a_whole_one() {
    let mut scene = Scene::ready().await;
    scene.server.on_replay(Replay::Nothing);
    // No other slot writes to this pool.
    let pool = scene.pool(3);
    let half = scene.open(scene.head);
    let [first, rest @ ..] = scene.swap_writes(half, &pool, 41);
    scene.set(half, first.0, first.1);
    scene.close();
    scene.subscribed(2).await;
    for (key, content) in rest {
        scene.set(half, key, content);
    }
    scene.seal(half);
    scene.head = half;
    sleep(Duration::from_millis(300)).await;
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_replayed_again_and_again_are_the_same_slots() {
    let mut scene = Scene::ready().await;
    for lost in 1..4 {
        scene.pass();
        scene.pass();
        scene.fail(Code::Internal, "lagged to send an update");
        scene.subscribed(lost + 1).await;
        scene.agree().await;
    }
    let slot = scene.pass();
    scene.confirm(slot);
    scene.agree().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_died_while_the_stream_was_lost_is_gone_after_it() {
    let mut scene = Scene::ready().await;
    let kept = scene.head;
    let slot = scene.pass();
    scene.pass();
    scene.agree().await;
    scene.close();
    scene.kill(slot);
    scene.head = kept;
    scene.pass();
    scene.agree().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_while_the_stream_was_lost_is_confirmed_after_it() {
    let mut scene = Scene::ready().await;
    let parent = scene.head;
    let winner = scene.pass_on(parent);
    let loser = scene.pass_on(parent);
    scene.pass_on(loser);
    scene.agree().await;
    scene.close();
    scene.confirm(winner);
    scene.head = winner;
    scene.pass();
    scene.agree().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_lost_during_its_own_replay_is_resumed_once_more() {
    let mut scene = Scene::ready().await;
    for _ in 0..200 {
        scene.pass();
    }
    scene.agree().await;
    scene.line.cut();
    scene.subscribed(2).await;
    scene.line.cut();
    scene.pass();
    scene.agree().await;
    scene.end().await;
}

//! Streams that are lost and resumed.

use std::time::Duration;

use sluice_geyser::scripted::Code;
use sluice_testkit::{rpc_node::wire::Call, yellowstone_server::ReplayPolicy};
use tokio::time::sleep;

use super::Scenario;

/// A market that has lost its stream while the chain went on, on two forks, with a slot half reported before.
async fn lost(replay: ReplayPolicy) -> (Scenario, usize) {
    let mut scenario = Scenario::ready().await;
    scenario.server.on_replay(replay);
    let confirmed = scenario.pass();
    scenario.confirm(confirmed);
    scenario.pass();
    let pool = scenario.pool(0);
    let half = scenario.open(scenario.head);
    let [first, rest @ ..] = scenario.swap_writes(half, &pool, 41);
    scenario.set(half, first.0, first.1);
    scenario.agree().await;
    let reads = reads(&scenario);
    scenario.fail(Code::Unavailable, "the server is going away");
    for (key, content) in rest {
        scenario.set(half, key, content);
    }
    scenario.seal(half);
    let fork = scenario.pass_on(scenario.head);
    scenario.pass_on(fork);
    scenario.head = half;
    scenario.pass();
    (scenario, reads)
}

/// How often the market has read accounts. It asks for the node's slot every few seconds, whatever happens.
fn reads(scenario: &Scenario) -> usize {
    let calls = scenario.node.calls().into_iter();
    calls
        .filter(|call| !matches!(call, Call::Slot { .. }))
        .count()
}

/// The market resumes without asking the node again.
async fn resumes(replay: ReplayPolicy) {
    let (scenario, before) = lost(replay).await;
    scenario.agree().await;
    assert_eq!(
        reads(&scenario),
        before,
        "nothing was missed, so nothing is read"
    );
    let requests = scenario.server.requests();
    assert_eq!(requests.len(), 2);
    let confirmed = scenario.chain.lock().statuses.confirmed_slot();
    assert_eq!(requests[1].from_slot, Some(confirmed));
    scenario.end().await;
}

/// The market reads everything again.
async fn starts_over(replay: ReplayPolicy) {
    let (mut scenario, before) = lost(replay).await;
    scenario.pass_until_agreed().await;
    assert!(
        reads(&scenario) > before,
        "a gap can only be closed by a snapshot"
    );
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_stream_is_resumed_where_it_was_confirmed() {
    resumes(ReplayPolicy::EveryWrite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_of_only_the_last_writes_is_as_good() {
    resumes(ReplayPolicy::Reference).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_from_another_validator_with_other_write_versions_is_as_good() {
    resumes(ReplayPolicy::OtherVersions).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_window_that_is_gone_costs_a_snapshot() {
    let text = "broadcast from 5 is not available, last available: 9";
    starts_over(ReplayPolicy::Refused(Code::OutOfRange, text.to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_replay_costs_a_snapshot() {
    let text = "from_slot is not supported";
    starts_over(ReplayPolicy::Refused(Code::Internal, text.to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_catching_up_costs_a_snapshot() {
    let text = "failed to get replay response";
    starts_over(ReplayPolicy::Refused(Code::Internal, text.to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_is_granted_and_never_comes_is_noticed() {
    starts_over(ReplayPolicy::Nothing).await;
}

/// The one slot that was reported in part builds on the confirmed one, so without the replay everything seems to be there.
#[tokio::test(flavor = "multi_thread")]
async fn half_a_slot_whose_replay_never_comes_is_not_taken_for_a_whole_one() {
    let mut scenario = Scenario::ready().await;
    scenario.server.on_replay(ReplayPolicy::Nothing);
    // No other slot writes to this pool.
    let pool = scenario.pool(3);
    let half = scenario.open(scenario.head);
    let [first, rest @ ..] = scenario.swap_writes(half, &pool, 41);
    scenario.set(half, first.0, first.1);
    scenario.close();
    scenario.subscribed(2).await;
    for (key, content) in rest {
        scenario.set(half, key, content);
    }
    scenario.seal(half);
    scenario.head = half;
    sleep(Duration::from_millis(300)).await;
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_replayed_again_and_again_are_the_same_slots() {
    let mut scenario = Scenario::ready().await;
    for lost in 1..4 {
        scenario.pass();
        scenario.pass();
        scenario.fail(Code::Internal, "lagged to send an update");
        scenario.subscribed(lost + 1).await;
        scenario.agree().await;
    }
    let slot = scenario.pass();
    scenario.confirm(slot);
    scenario.agree().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_died_while_the_stream_was_lost_is_gone_after_it() {
    let mut scenario = Scenario::ready().await;
    let kept = scenario.head;
    let slot = scenario.pass();
    scenario.pass();
    scenario.agree().await;
    scenario.close();
    scenario.kill(slot);
    scenario.head = kept;
    scenario.pass();
    scenario.agree().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_while_the_stream_was_lost_is_confirmed_after_it() {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    let winner = scenario.pass_on(parent);
    let loser = scenario.pass_on(parent);
    scenario.pass_on(loser);
    scenario.agree().await;
    scenario.close();
    scenario.confirm(winner);
    scenario.head = winner;
    scenario.pass();
    scenario.agree().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_lost_during_its_own_replay_is_resumed_once_more() {
    let mut scenario = Scenario::ready().await;
    for _ in 0..200 {
        scenario.pass();
    }
    scenario.agree().await;
    scenario.link.cut();
    scenario.subscribed(2).await;
    scenario.link.cut();
    scenario.pass();
    scenario.agree().await;
    scenario.end().await;
}

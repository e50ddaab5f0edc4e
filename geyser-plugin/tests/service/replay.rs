//! Replay by `from_slot`: frozen blocks alone, and the seam to the live stream.

use std::time::Duration;

use tokio::time::sleep;
use tonic::Code;
use yellowstone_grpc_proto::geyser::{CommitmentLevel, SlotStatus, SubscribeRequest};

use crate::{at, chain::Chain, everything};

/// Long enough for everything sent before to have reached the hub.
const SETTLING: Duration = Duration::from_millis(500);

fn since(slot: u64) -> SubscribeRequest {
    SubscribeRequest {
        from_slot: Some(slot),
        ..everything()
    }
}

#[tokio::test]
async fn of_the_open_slot_only_the_rest_comes() {
    let chain = Chain::from_genesis("");
    chain.writes(1, 10, 1, b"");
    chain.completes(1);
    chain.reports(2, SlotStatus::SlotCreatedBank);
    chain.writes(2, 10, 2, b"");
    sleep(SETTLING).await;
    let mut subscription = chain.call(since(1)).await;
    let replayed = ["a:account 10 in 1 v1", "m:block 1", "s:1 SLOT_PROCESSED"];
    assert_eq!(subscription.names(3).await, replayed);
    chain.writes(2, 20, 3, b"");
    chain.completes(2);
    // The first write of slot 2 is in neither part, and nothing says so.
    let live = ["a:account 20 in 2 v3", "m:block 2", "s:2 SLOT_PROCESSED"];
    assert_eq!(subscription.names(3).await, live);
    // Asked for again on the same stream, now that it is frozen, it is whole.
    subscription.send(since(2)).await;
    let whole = [
        "a:account 10 in 2 v2",
        "a:account 20 in 2 v3",
        "m:block 2",
        "s:2 SLOT_CREATED_BANK",
    ];
    assert_eq!(subscription.names(3).await, whole[..3]);
    chain.stop().await;
}

#[tokio::test]
async fn a_block_that_freezes_while_the_replay_is_put_together_comes_twice() {
    let chain = Chain::from_genesis("replay_delay_ms: 3000");
    chain.writes(1, 10, 1, b"");
    chain.completes(1);
    sleep(SETTLING).await;
    let mut subscription = chain.call(since(1)).await;
    sleep(SETTLING).await;
    chain.writes(2, 10, 2, b"");
    chain.writes(2, 10, 3, b"");
    chain.completes(2);
    let expected = [
        "a:account 10 in 1 v1",
        "m:block 1",
        "s:1 SLOT_PROCESSED",
        "a:account 10 in 2 v3",
        "m:block 2",
        "s:2 SLOT_PROCESSED",
        "a:account 10 in 2 v2",
        "a:account 10 in 2 v3",
        "m:block 2",
        "s:2 SLOT_PROCESSED",
    ];
    assert_eq!(subscription.names(expected.len()).await, expected);
    chain.stop().await;
}

#[tokio::test]
async fn blocks_below_the_commitment_are_not_replayed() {
    let chain = Chain::from_genesis("");
    for slot in 1..=3 {
        chain.writes(slot, 10, slot, b"");
        chain.completes(slot);
    }
    chain.reports(2, SlotStatus::SlotConfirmed);
    sleep(SETTLING).await;
    let mut subscription = chain.call(at(CommitmentLevel::Confirmed, since(2))).await;
    let replayed = [
        "a:account 10 in 2 v2",
        "m:block 2",
        "s:2 SLOT_PROCESSED",
        "s:2 SLOT_CONFIRMED",
    ];
    assert_eq!(subscription.names(4).await, replayed);
    chain.reports(3, SlotStatus::SlotConfirmed);
    let live = ["a:account 10 in 3 v3", "m:block 3", "s:3 SLOT_CONFIRMED"];
    assert_eq!(subscription.names(3).await, live);
    chain.stop().await;
}

#[tokio::test]
async fn replay_that_is_switched_off_ends_the_stream() {
    let chain = Chain::from_genesis("replay_stored_slots: 0");
    chain.completes(1);
    sleep(SETTLING).await;
    let (status, updates) = chain.call(since(1)).await.end().await;
    assert_eq!((status.code(), updates), (Code::Internal, 0));
    assert_eq!(status.message(), "from_slot is not supported");
    // On a later request of a live stream, too.
    let mut subscription = chain.subscribe(everything()).await;
    subscription.send(since(1)).await;
    let (status, _) = subscription.end().await;
    assert_eq!(status.message(), "from_slot is not supported");
    chain.stop().await;
}

#[tokio::test]
async fn a_node_that_has_just_started_cannot_replay() {
    let chain = Chain::from_genesis("");
    chain.writes(0, 90, 0, b"");
    chain.reports(1, SlotStatus::SlotCreatedBank);
    chain.writes(1, 10, 1, b"");
    sleep(SETTLING).await;
    let (status, _) = chain.call(since(0)).await.end().await;
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(status.message(), "failed to get replay response");
    chain.completes(1);
    sleep(SETTLING).await;
    let mut subscription = chain.call(since(1)).await;
    assert_eq!(subscription.name().await, "a:account 10 in 1 v1");
    chain.stop().await;
}

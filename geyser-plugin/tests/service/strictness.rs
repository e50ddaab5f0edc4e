//! Strictness of the plugin: no more than a real server does for its subscribers, and its limits.

use std::time::{Duration, Instant};

use sluice_geyser_plugin::{client::PING_INTERVAL, config::DEFAULT_REQUEST_BYTES};
use tokio::time::sleep;
use tonic::Code;
use yellowstone_grpc_proto::geyser::{
    CommitmentLevel, SlotStatus, SubscribeRequest, SubscribeRequestFilterAccounts,
};

use crate::{at, chain::Chain, everything, owned_by};

/// Long enough for everything sent before to have reached the hub and passed by every subscriber.
const SETTLING: Duration = Duration::from_millis(500);

/// Puts a wide gap between a request and the replay that answers it: much wider than what a test does in it takes.
const SLOW_REPLAY: &str = "replay_delay_ms: 3000";

/// Account filter under another name, so that updates say which request they answer.
fn named(name: &str, from_slot: Option<u64>) -> SubscribeRequest {
    let filter = SubscribeRequestFilterAccounts::default();
    SubscribeRequest {
        accounts: [(name.to_owned(), filter)].into(),
        from_slot,
        ..SubscribeRequest::default()
    }
}

#[tokio::test]
async fn what_passes_before_the_first_request_is_dropped() {
    let chain = Chain::from_genesis("");
    let mut subscription = chain.open().await;
    chain.writes(1, 10, 1, b"");
    sleep(SETTLING).await;
    chain.replace(&mut subscription, everything()).await;
    chain.writes(1, 10, 2, b"");
    assert_eq!(subscription.name().await, "a:account 10 in 1 v2");
    // The slot looks whole nevertheless.
    chain.completes(1);
    assert_eq!(subscription.name().await, "m:block 1");
    assert_eq!(subscription.name().await, "s:1 SLOT_PROCESSED");
    chain.stop().await;
}

#[tokio::test]
async fn a_pong_does_not_prove_the_filter_sent_before_it() {
    let chain = Chain::from_genesis(SLOW_REPLAY);
    chain.writes(1, 10, 1, b"");
    chain.completes(1);
    sleep(SETTLING).await;
    let mut subscription = chain.call(named("first", Some(1))).await;
    subscription.pong(3).await;
    // The helper drops what comes before the pong, and nothing did.
    assert_eq!(subscription.name().await, "first:account 10 in 1 v1");
    chain.stop().await;
}

#[tokio::test]
async fn only_the_newest_waiting_request_is_kept_and_a_from_slot_before_it_is_lost() {
    let chain = Chain::from_genesis(SLOW_REPLAY);
    chain.writes(1, 10, 1, b"");
    chain.completes(1);
    sleep(SETTLING).await;
    let mut subscription = chain.call(named("first", Some(1))).await;
    sleep(SETTLING).await;
    // Both come while the first is being answered.
    subscription.send(named("lost", Some(1))).await;
    subscription.send(named("newest", None)).await;
    assert_eq!(subscription.name().await, "first:account 10 in 1 v1");
    sleep(SETTLING).await;
    chain.writes(2, 10, 2, b"");
    assert_eq!(subscription.name().await, "newest:account 10 in 2 v2");
    chain.stop().await;
}

#[tokio::test]
async fn a_request_above_the_size_limit_closes_the_stream_without_a_status() {
    let chain = Chain::from_genesis("");
    let mut subscription = chain.subscribe(everything()).await;
    let address = bs58::encode([255; 32]).into_string();
    let count = DEFAULT_REQUEST_BYTES / (address.len() + 2) + 1;
    let large = SubscribeRequestFilterAccounts {
        account: vec![address; count],
        ..SubscribeRequestFilterAccounts::default()
    };
    let request = SubscribeRequest {
        accounts: [("large".to_owned(), large)].into(),
        ..SubscribeRequest::default()
    };
    subscription.send(request).await;
    assert_eq!(subscription.plain_end().await, 0);
    chain.stop().await;
}

#[tokio::test]
async fn the_size_limit_is_settable() {
    let chain = Chain::with(
        r#"{libpath: "none", grpc: {address: "127.0.0.1:0", max_decoding_message_size: 200}}"#,
    );
    let mut subscription = chain.subscribe(owned_by(1)).await;
    chain.writes(0, 10, 1, b"");
    assert_eq!(subscription.name().await, "owner1:account 10 in 0 v1");
    subscription.send(named(&"n".repeat(120), None)).await;
    subscription.send(named(&"n".repeat(300), None)).await;
    assert_eq!(subscription.plain_end().await, 0);
    chain.stop().await;
}

#[tokio::test]
async fn one_rejected_key_ends_the_stream_for_all_that_share_it() {
    let rejected = bs58::encode([7; 32]).into_string();
    let chain = Chain::with(&format!(
        r#"{{libpath: "none", grpc: {{address: "127.0.0.1:0",
            filter_limits: {{accounts: {{max: 2, owner_reject: ["{rejected}"]}}}}}}}}"#
    ));
    let mut subscription = chain.subscribe(owned_by(1)).await;
    let mut request = owned_by(1);
    request.accounts.extend(owned_by(7).accounts);
    subscription.send(request).await;
    let (status, _) = subscription.end().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        format!("failed to create filter: Pubkey {rejected} in filters is not allowed")
    );

    let mut subscription = chain.subscribe(owned_by(1)).await;
    let mut request = owned_by(1);
    request.accounts.extend(owned_by(2).accounts);
    request.accounts.extend(owned_by(3).accounts);
    subscription.send(request).await;
    let (status, _) = subscription.end().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "failed to create filter: Max amount of filters/data_slices reached, only 2 allowed"
    );
    chain.stop().await;
}

#[tokio::test]
async fn a_bad_request_ends_the_stream_even_when_a_good_one_follows_at_once() {
    let chain = Chain::from_genesis(SLOW_REPLAY);
    chain.completes(1);
    sleep(SETTLING).await;
    let mut subscription = chain.call(named("first", Some(1))).await;
    subscription.send(named(&"n".repeat(129), None)).await;
    subscription.send(named("good", None)).await;
    let (status, _) = subscription.end().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    chain.stop().await;
}

#[tokio::test]
async fn a_subscriber_that_falls_behind_the_live_stream_is_ended() {
    let chain = Chain::from_genesis("replay_delay_ms: 3000, limits: {stream_batches: 2}");
    chain.completes(1);
    sleep(SETTLING).await;
    let mut subscription = chain.call(named("slow", Some(1))).await;
    sleep(SETTLING).await;
    for version in 0..40 {
        chain.writes(2, 10, version, b"");
        // A batch of its own each.
        sleep(Duration::from_millis(10)).await;
    }
    let (status, _) = subscription.end().await;
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(status.message(), "lagged to receive geyser messages");
    chain.stop().await;
}

#[tokio::test]
async fn a_change_of_commitment_loses_what_lies_between() {
    let chain = Chain::from_genesis("");
    let mut subscription = chain.subscribe(everything()).await;
    chain.writes(0, 90, 0, b"");
    chain.writes(1, 10, 1, b"");
    chain.completes(1);
    chain.reports(1, SlotStatus::SlotConfirmed);
    while subscription.name().await != "s:1 SLOT_CONFIRMED" {}
    let finalized = at(CommitmentLevel::Finalized, everything());
    chain.replace(&mut subscription, finalized).await;
    chain.reports(1, SlotStatus::SlotFinalized);
    let expected = [
        "a:account 90 in 0 v0",
        "s:0 SLOT_FINALIZED",
        "a:account 10 in 1 v1",
        "m:block 1",
        "s:1 SLOT_FINALIZED",
    ];
    assert_eq!(subscription.names(expected.len()).await, expected);
    chain.stop().await;
}

#[tokio::test]
async fn a_silent_stream_is_pinged_every_ten_seconds() {
    let chain = Chain::from_genesis("");
    let mut subscription = chain.open().await;
    let opened = tokio::time::Instant::now();
    assert_eq!(subscription.name().await, ":Ping(SubscribeUpdatePing)");
    assert!(opened.elapsed() > PING_INTERVAL - SETTLING);
    chain.stop().await;
}

#[tokio::test]
async fn a_plugin_that_lags_gives_out_late_what_its_validator_reported() {
    /// Each time the plugin stands still.
    const STANDS_STILL: Duration = Duration::from_secs(2);
    let chain = Chain::from_genesis("lag: {every_ms: 200, for_ms: 2000}");
    let mut subscription = chain.open().await;
    chain.replace(&mut subscription, everything()).await;
    // The time to the next one passes.
    sleep(SETTLING).await;
    let written = Instant::now();
    chain.writes(1, 10, 1, b"");
    assert_eq!(subscription.name().await, "a:account 10 in 1 v1");
    assert!(written.elapsed() >= STANDS_STILL);
    chain.stop().await;
}

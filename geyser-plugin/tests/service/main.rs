//! Tests of the real server over a real socket, fed by a scripted validator.

#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "what tests share is test code as well, but stands in no test function"
)]

mod chain;
mod replay;
mod scenarios;
mod strictness;

use std::time::Duration;

use chain::{Chain, PATIENCE, Subscription};
use sluice_geyser_plugin::{config::Config, server::Server};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request};
use yellowstone_grpc_proto::geyser::{
    CommitmentLevel, GetBlockHeightRequest, GetLatestBlockhashRequest, GetSlotRequest,
    GetVersionRequest, IsBlockhashValidRequest, PingRequest, SlotStatus, SubscribeDeshredRequest,
    SubscribeGossipRequest, SubscribeReplayInfoRequest, SubscribeRequest,
    SubscribeRequestFilterAccounts, SubscribeRequestFilterBlocksMeta, SubscribeRequestFilterSlots,
};

fn everything() -> SubscribeRequest {
    SubscribeRequest {
        accounts: [("a".to_owned(), SubscribeRequestFilterAccounts::default())].into(),
        slots: [("s".to_owned(), SubscribeRequestFilterSlots::default())].into(),
        blocks_meta: [("m".to_owned(), SubscribeRequestFilterBlocksMeta {})].into(),
        ..SubscribeRequest::default()
    }
}

fn at(level: CommitmentLevel, request: SubscribeRequest) -> SubscribeRequest {
    SubscribeRequest {
        commitment: Some(level.into()),
        ..request
    }
}

fn owned_by(owner: u8) -> SubscribeRequest {
    let filter = SubscribeRequestFilterAccounts {
        owner: vec![bs58::encode([owner; 32]).into_string()],
        ..SubscribeRequestFilterAccounts::default()
    };
    SubscribeRequest {
        accounts: [(format!("owner{owner}"), filter)].into(),
        ..SubscribeRequest::default()
    }
}

#[tokio::test]
async fn processed_sees_every_write_and_confirmed_the_last_one() {
    let chain = Chain::start("");
    let mut processed = chain.subscribe(everything()).await;
    let mut confirmed = chain
        .subscribe(at(CommitmentLevel::Confirmed, everything()))
        .await;
    chain.writes(0, 90, 0, b"genesis");
    chain.writes(1, 10, 1, b"first");
    chain.writes(1, 10, 2, b"second");
    chain.completes(1);
    chain.reports(1, SlotStatus::SlotConfirmed);
    let expected = [
        "a:account 90 in 0 v0",
        "a:account 10 in 1 v1",
        "a:account 10 in 1 v2",
        "m:block 1",
        "s:1 SLOT_PROCESSED",
        "s:0 SLOT_PROCESSED",
        "s:0 SLOT_CONFIRMED",
        "s:1 SLOT_CONFIRMED",
    ];
    assert_eq!(processed.names(expected.len()).await, expected);
    let expected = [
        "s:1 SLOT_PROCESSED",
        "s:0 SLOT_PROCESSED",
        "a:account 90 in 0 v0",
        "s:0 SLOT_CONFIRMED",
        "a:account 10 in 1 v2",
        "m:block 1",
        "s:1 SLOT_CONFIRMED",
    ];
    assert_eq!(confirmed.names(expected.len()).await, expected);
    chain.stop().await;
}

#[tokio::test]
async fn a_new_request_replaces_the_whole_filter_and_a_ping_does_not() {
    let chain = Chain::start("");
    let mut subscription = chain.subscribe(owned_by(1)).await;
    chain.writes(0, 10, 1, b"");
    chain.writes(0, 20, 2, b"");
    assert_eq!(subscription.name().await, "owner1:account 10 in 0 v1");
    subscription.pong(5).await;
    chain.writes(0, 10, 3, b"");
    assert_eq!(subscription.name().await, "owner1:account 10 in 0 v3");
    chain.replace(&mut subscription, owned_by(2)).await;
    chain.writes(0, 10, 4, b"");
    chain.writes(0, 20, 5, b"");
    assert_eq!(subscription.name().await, "owner2:account 20 in 0 v5");
    chain.stop().await;
}

#[tokio::test]
async fn from_slot_repeats_the_past_and_goes_on_without_a_gap() {
    let chain = Chain::start("replay_stored_slots: 3");
    let mut live = chain.subscribe(everything()).await;
    for slot in 1..=6 {
        chain.writes(slot, 10, slot, b"");
        chain.completes(slot);
        chain.reports(slot, SlotStatus::SlotFinalized);
    }
    while live.name().await != "s:6 SLOT_FINALIZED" {}

    let mut client = chain.client().await;
    let info = client
        .subscribe_replay_info(SubscribeReplayInfoRequest {})
        .await
        .unwrap();
    assert_eq!(info.into_inner().first_available, Some(4));

    let from = |slot| SubscribeRequest {
        from_slot: Some(slot),
        ..everything()
    };
    let (requests, receiver) = mpsc::channel(1);
    requests.send(from(3)).await.unwrap();
    let updates = client
        .subscribe(ReceiverStream::new(receiver))
        .await
        .unwrap()
        .into_inner();
    let (status, updates) = Subscription { requests, updates }.end().await;
    assert_eq!((status.code(), updates), (Code::OutOfRange, 0));
    assert_eq!(
        status.message(),
        "broadcast from 3 is not available, last available: 4"
    );

    // On a live stream, too.
    live.send(from(6)).await;
    let expected = [
        "a:account 10 in 6 v6",
        "m:block 6",
        "s:6 SLOT_PROCESSED",
        "s:6 SLOT_CONFIRMED",
        "s:6 SLOT_FINALIZED",
        "a:account 10 in 7 v7",
    ];
    assert_eq!(live.names(5).await, expected[..5]);
    chain.writes(7, 10, 7, b"");
    assert_eq!(live.name().await, expected[5]);
    chain.stop().await;
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_is_ended() {
    let chain = Chain::start("limits: {client_messages: 100}");
    let mut stalled = chain.subscribe(everything()).await;
    let mut reading = chain.subscribe(owned_by(2)).await;
    // More than the transport's own windows hold.
    let data = vec![1; 1 << 20];
    for version in 0..200 {
        chain.writes(0, 10, version, &data);
    }
    chain.writes(0, 20, 200, b"");
    assert_eq!(reading.name().await, "owner2:account 20 in 0 v200");
    let (status, updates) = stalled.end().await;
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(status.message(), "lagged to send an update");
    assert!(updates < 200, "{updates}");
    chain.stop().await;
}

#[tokio::test]
async fn a_subscriber_is_bounded_in_bytes() {
    let chain = Chain::start("limits: {client_bytes: 4000000}");
    let mut stalled = chain.subscribe(everything()).await;
    let data = vec![1; 1 << 20];
    for version in 0..100 {
        chain.writes(0, 10, version, &data);
    }
    let (status, updates) = stalled.end().await;
    assert_eq!(status.message(), "lagged to send an update");
    assert!(updates < 100, "{updates}");
    chain.stop().await;
}

#[tokio::test]
async fn messages_lost_before_the_hub_end_every_subscription() {
    let chain = Chain::start("");
    let mut subscription = chain.subscribe(everything()).await;
    chain.writes(5, 10, 1, b"");
    chain.server().intake().lose(6);
    chain.completes(5);
    let (status, _) = subscription.end().await;
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(status.message(), "lagged to receive geyser messages");
    // The next subscriber is served, and what can be replayed begins after the lost slots.
    let mut next = chain.subscribe(everything()).await;
    chain.completes(7);
    while next.name().await != "s:7 SLOT_PROCESSED" {}
    let mut client = chain.client().await;
    let info = client
        .subscribe_replay_info(SubscribeReplayInfoRequest {})
        .await
        .unwrap();
    assert_eq!(info.into_inner().first_available, Some(7));
    chain.stop().await;
}

#[tokio::test]
async fn a_bad_request_ends_the_subscription_with_its_reason() {
    let chain = Chain::start("");
    let mut subscription = chain.subscribe(everything()).await;
    let mut request = SubscribeRequest::default();
    request
        .block_footer
        .insert("f".to_owned(), Default::default());
    subscription.send(request).await;
    let (status, _) = subscription.end().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().contains("`block_footer`"),
        "{}",
        status.message()
    );
    chain.stop().await;
}

#[tokio::test]
async fn closing_the_request_side_keeps_the_updates() {
    let chain = Chain::start("");
    let Subscription { requests, updates } = chain.subscribe(owned_by(1)).await;
    drop(requests);
    let (requests, _unused) = mpsc::channel(1);
    let mut subscription = Subscription { requests, updates };
    tokio::time::sleep(Duration::from_millis(200)).await;
    chain.writes(0, 10, 1, b"");
    assert_eq!(subscription.name().await, "owner1:account 10 in 0 v1");
    chain.stop().await;
}

#[tokio::test]
async fn unary_calls_answer_for_their_commitment() {
    let chain = Chain::start("");
    let mut client = chain.client().await;
    let early = client
        .get_slot(GetSlotRequest::default())
        .await
        .unwrap_err();
    assert_eq!(early.code(), Code::Unavailable);

    let mut live = chain.subscribe(everything()).await;
    chain.writes(0, 90, 0, b"");
    for slot in 1..=5 {
        chain.completes(slot);
    }
    chain.reports(3, SlotStatus::SlotConfirmed);
    while live.name().await != "s:3 SLOT_CONFIRMED" {}
    let confirmed = Some(CommitmentLevel::Confirmed.into());

    let slot = client.get_slot(GetSlotRequest::default()).await.unwrap();
    assert_eq!(slot.into_inner().slot, 5);
    let request = GetSlotRequest {
        commitment: confirmed,
    };
    assert_eq!(client.get_slot(request).await.unwrap().into_inner().slot, 3);
    let request = GetBlockHeightRequest {
        commitment: confirmed,
    };
    let height = client.get_block_height(request).await.unwrap();
    assert_eq!(height.into_inner().block_height, 3);
    let latest = client
        .get_latest_blockhash(GetLatestBlockhashRequest::default())
        .await
        .unwrap();
    let latest = latest.into_inner();
    assert_eq!((latest.slot, latest.last_valid_block_height), (5, 155));
    for (commitment, valid) in [(None, true), (confirmed, false)] {
        let request = IsBlockhashValidRequest {
            blockhash: latest.blockhash.clone(),
            commitment,
        };
        let answer = client
            .is_blockhash_valid(request)
            .await
            .unwrap()
            .into_inner();
        assert_eq!(answer.valid, valid);
    }
    let request = IsBlockhashValidRequest {
        blockhash: "0".to_owned(),
        commitment: None,
    };
    let refusal = client.is_blockhash_valid(request).await.unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidArgument);
    let pong = client.ping(PingRequest { count: 7 }).await.unwrap();
    assert_eq!(pong.into_inner().count, 7);
    let version = client
        .get_version(GetVersionRequest {})
        .await
        .unwrap()
        .into_inner();
    assert!(
        version.version.contains("sluice-geyser-plugin"),
        "{}",
        version.version
    );
    chain.stop().await;
}

#[tokio::test]
async fn streams_that_are_not_served_are_refused_as_unimplemented() {
    let chain = Chain::start("");
    let mut client = chain.client().await;
    let requests = tokio_stream::empty::<SubscribeDeshredRequest>();
    let deshred = client.subscribe_deshred(requests).await.unwrap_err();
    assert_eq!(deshred.code(), Code::Unimplemented);
    assert!(
        deshred.message().contains("SubscribeDeshred"),
        "by the method itself: {}",
        deshred.message()
    );
    let gossip = client
        .subscribe_gossip(SubscribeGossipRequest {})
        .await
        .unwrap_err();
    assert_eq!(gossip.code(), Code::Unimplemented);
    assert!(
        gossip.message().contains("SubscribeGossip"),
        "by the method itself: {}",
        gossip.message()
    );
    chain.stop().await;
}

#[tokio::test]
async fn the_token_is_checked_on_every_call() {
    let chain =
        Chain::with(r#"{libpath: "none", grpc: {address: "127.0.0.1:0", x_token: "secret"}}"#);
    let mut client = chain.client().await;
    let call = |token: Option<&'static str>| {
        let mut request = Request::new(PingRequest { count: 1 });
        if let Some(token) = token {
            request
                .metadata_mut()
                .insert("x-token", token.parse().unwrap());
        }
        request
    };
    for token in [None, Some("secre"), Some("secreT")] {
        let refusal = client.ping(call(token)).await.unwrap_err();
        assert_eq!(refusal.code(), Code::Unauthenticated);
    }
    assert!(client.ping(call(Some("secret"))).await.is_ok());
    chain.stop().await;
}

#[tokio::test]
async fn stopping_ends_streams_with_a_status_and_frees_the_port() {
    let chain = Chain::start("");
    let address = chain.server().address();
    let mut subscription = chain.subscribe(everything()).await;
    let stopped = tokio::spawn(chain.stop());
    let (status, _) = subscription.end().await;
    assert_eq!(status.code(), Code::Unavailable);
    timeout(PATIENCE, stopped).await.unwrap().unwrap();
    std::net::TcpListener::bind(address).expect("the port is free");
}

#[tokio::test]
async fn an_address_in_use_is_reported_at_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = format!(r#"{{libpath: "none", grpc: {{address: "{address}"}}}}"#);
    let error = Server::start(&Config::parse(&text).unwrap()).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

//! Forks: what was emitted too early is retracted, and nothing else is.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::Value;
use sluice_geyser::SlotStatus;
use sluice_store::{Commitment, EventKind, WebhookDefinition};

use sluice_harness::indexer::{Indexer, IndexerHarness, send};
use sluice_testkit::updates::{
    account, account_of, block_between, block_on, created, freeze_and_confirm, key, program, slot,
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    an_abandoned_slot_is_retracted_and_never_confirmed,
    a_dead_slot_is_retracted,
    what_was_emitted_before_a_crash_is_retracted_after_it,
    what_was_retracted_and_is_confirmed_after_all_is_reinstated,
    a_confirmed_block_that_its_server_replaces_is_retracted_and_the_other_emitted,
    a_block_that_another_replaces_without_a_word_is_retracted_once_the_other_is_built_on,
);

/// An indexer for a webhook on accounts at processed and one at confirmed.
async fn start(harness: &IndexerHarness) -> Indexer {
    for (number, commitment) in [(1, Commitment::Processed), (2, Commitment::Confirmed)] {
        let definition = WebhookDefinition {
            commitment,
            events: [EventKind::AccountChange].into_iter().collect(),
            ..harness.definition()
        };
        harness.create(number, definition).await;
    }
    harness.start().await
}

/// Type, slot and commitment of what was received, by webhook and sequence.
fn short(bodies: &[Value]) -> Vec<String> {
    bodies
        .iter()
        .map(|body| {
            let text = |field: &str| body[field].as_str().expect("text").to_owned();
            format!("{} {} {}", text("type"), body["slot"], text("commitment"))
        })
        .collect()
}

/// The id under which the webhook at processed was sent its message number `sequence`.
async fn id_of(harness: &IndexerHarness, sequence: u64) -> String {
    let received = harness.received(1).await;
    let found = received.iter().find(|request| {
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        body["commitment"] == "processed" && body["sequence"] == sequence
    });
    let headers = &found.expect("received").headers;
    headers["webhook-id"].to_str().expect("ascii").to_owned()
}

async fn an_abandoned_slot_is_retracted_and_never_confirmed(mut harness: IndexerHarness) {
    let indexer = start(&harness).await;
    let (connection, name) = harness.listening().await;
    send(
        &connection,
        [created(&name, 11), account(11), block_on(11, 10, "fork")],
    )
    .await;
    send(&connection, [slot(&name, 11, SlotStatus::Processed)]).await;
    harness.bodies(1).await;
    send(
        &connection,
        [created(&name, 12), account(12), block_on(12, 10, "chain")],
    )
    .await;
    send(&connection, freeze_and_confirm(&name, 12)).await;

    let bodies = harness.bodies(4).await;
    assert_eq!(
        short(&bodies),
        [
            "accountChange 11 processed",
            "accountChange 12 processed",
            "reverted 11 processed",
            "accountChange 12 confirmed",
        ]
    );
    let reverted = &bodies[2]["data"];
    assert_eq!(reverted["messageId"], id_of(&harness, 1).await);
    assert_eq!(
        (&reverted["sequence"], &reverted["type"]),
        (&1.into(), &"accountChange".into())
    );
    assert_eq!(reverted["reason"], "abandoned");
    let unconfirmed = harness.store.unconfirmed_slots().await.expect("read");
    assert!(unconfirmed.is_empty());
    indexer.stop().await;
}

async fn a_dead_slot_is_retracted(mut harness: IndexerHarness) {
    let indexer = start(&harness).await;
    let (connection, name) = harness.listening().await;
    send(
        &connection,
        [created(&name, 11), account(11), block_on(11, 10, "block")],
    )
    .await;
    send(&connection, [slot(&name, 11, SlotStatus::Processed)]).await;
    send(&connection, [slot(&name, 11, SlotStatus::Dead)]).await;
    let bodies = harness.bodies(2).await;
    assert_eq!(short(&bodies)[1], "reverted 11 processed");
    assert_eq!(bodies[1]["data"]["reason"], "dead");

    // It comes back with a replacement block, and is confirmed.
    send(
        &connection,
        [
            created(&name, 11),
            account(11),
            block_on(11, 10, "repaired"),
        ],
    )
    .await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    let bodies = harness.bodies(4).await;
    assert_eq!(
        short(&bodies)[2..],
        ["accountChange 11 processed", "accountChange 11 confirmed"]
    );
    assert_ne!(id_of(&harness, 1).await, id_of(&harness, 3).await);
    indexer.stop().await;
}

async fn what_was_emitted_before_a_crash_is_retracted_after_it(mut harness: IndexerHarness) {
    let indexer = start(&harness).await;
    let (connection, name) = harness.listening().await;
    for (number, parent) in [(11, 10), (12, 11), (13, 11)] {
        let updates = [
            created(&name, number),
            account(number),
            block_on(number, parent, &format!("hash{number}")),
        ];
        send(&connection, updates).await;
        send(&connection, [slot(&name, number, SlotStatus::Processed)]).await;
    }
    harness.bodies(3).await;
    indexer.kill().await;
    drop(connection);

    // Another node saw another block in slot 12, and nothing of slot 13.
    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11));
    for (number, hash, parent) in [
        (11, "hash11", (10, "hash10")),
        (12, "other", (11, "hash11")),
        (14, "hash14", (12, "other")),
    ] {
        let updates = [
            created(&name, number),
            account(number),
            block_between(number, hash, parent),
        ];
        send(&connection, updates).await;
        send(&connection, freeze_and_confirm(&name, number)).await;
    }
    let bodies = harness.bodies(7 + 3).await;
    let mut of_processed = short(&bodies[..7]);
    of_processed.sort();
    assert_eq!(
        of_processed,
        [
            "accountChange 11 processed",
            "accountChange 12 processed",
            "accountChange 12 processed",
            "accountChange 13 processed",
            "accountChange 14 processed",
            "reverted 12 processed",
            "reverted 13 processed",
        ]
    );
    let reverted = |reason: &str| {
        let found = bodies.iter().find(|body| body["data"]["reason"] == reason);
        found.expect("emitted")["data"]["messageId"].clone()
    };
    assert_eq!(reverted("replaced"), id_of(&harness, 2).await);
    assert_eq!(reverted("abandoned"), id_of(&harness, 3).await);
    assert_eq!(
        short(&bodies[7..]),
        [
            "accountChange 11 confirmed",
            "accountChange 12 confirmed",
            "accountChange 14 confirmed",
        ]
    );
    indexer.stop().await;
}

async fn what_was_retracted_and_is_confirmed_after_all_is_reinstated(mut harness: IndexerHarness) {
    let indexer = start(&harness).await;
    let (connection, name) = harness.listening().await;
    send(
        &connection,
        [created(&name, 11), account(11), block_on(11, 10, "block")],
    )
    .await;
    send(&connection, [slot(&name, 11, SlotStatus::Processed)]).await;
    send(&connection, [slot(&name, 11, SlotStatus::Dead)]).await;
    let bodies = harness.bodies(2).await;
    assert_eq!(short(&bodies)[1], "reverted 11 processed");
    indexer.kill().await;
    drop(connection);

    // Another node never had any trouble with the block.
    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11));
    send(
        &connection,
        [created(&name, 11), account(11), block_on(11, 10, "block")],
    )
    .await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    let bodies = harness.bodies(4).await;
    assert_eq!(
        short(&bodies)[2..],
        ["accountChange 11 processed", "accountChange 11 confirmed"]
    );
    assert_ne!(id_of(&harness, 1).await, id_of(&harness, 3).await);

    // And once more: nothing new.
    indexer.kill().await;
    drop(connection);
    let indexer = harness.start().await;
    let (connection, _) = harness.accept().await;
    send(
        &connection,
        [created(&name, 11), account(11), block_on(11, 10, "block")],
    )
    .await;
    send(&connection, [slot(&name, 11, SlotStatus::Processed)]).await;
    send(&connection, [slot(&name, 11, SlotStatus::Dead)]).await;
    send(
        &connection,
        [created(&name, 11), account(11), block_on(11, 10, "block")],
    )
    .await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    send(
        &connection,
        [created(&name, 12), block_between(12, "next", (11, "block"))],
    )
    .await;
    send(&connection, freeze_and_confirm(&name, 12)).await;
    indexer.until_checkpoint(12).await;
    harness.bodies(4).await;
    indexer.stop().await;
}

async fn a_confirmed_block_that_its_server_replaces_is_retracted_and_the_other_emitted(
    mut harness: IndexerHarness,
) {
    let indexer = start(&harness).await;
    let (connection, name) = harness.listening().await;
    send(
        &connection,
        [created(&name, 11), account(11), block_on(11, 10, "loser")],
    )
    .await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    harness.bodies(2).await;
    send(&connection, [slot(&name, 11, SlotStatus::Dead)]).await;
    send(
        &connection,
        [created(&name, 11), account(11), block_on(11, 10, "winner")],
    )
    .await;
    send(&connection, freeze_and_confirm(&name, 11)).await;

    let bodies = harness.bodies(6).await;
    let expected = ["processed", "confirmed"].map(|commitment| {
        ["accountChange", "reverted", "accountChange"].map(|kind| format!("{kind} 11 {commitment}"))
    });
    assert_eq!(short(&bodies), expected.concat());
    assert!(
        [1, 4]
            .iter()
            .all(|at| bodies[*at]["data"]["reason"] == "replaced"),
        "{bodies:#?}"
    );
    assert_eq!(
        harness
            .store
            .checkpoint(Commitment::Confirmed)
            .await
            .expect("read"),
        Some(11)
    );
    indexer.stop().await;
}

async fn a_block_that_another_replaces_without_a_word_is_retracted_once_the_other_is_built_on(
    mut harness: IndexerHarness,
) {
    let indexer = start(&harness).await;
    let (connection, name) = harness.listening().await;
    for hash in ["loser", "winner"] {
        // The account's data is the hash of the block.
        let data = Bytes::copy_from_slice(hash.as_bytes());
        let updates = [
            created(&name, 11),
            account_of(11, key(1), program(), data),
            block_on(11, 10, hash),
            slot(&name, 11, SlotStatus::Processed),
        ];
        send(&connection, updates).await;
    }
    let bodies = harness.bodies(1).await;
    assert_eq!(short(&bodies), ["accountChange 11 processed"]);
    let child = [
        created(&name, 12),
        account(12),
        block_between(12, "hash12", (11, "winner")),
    ];
    send(&connection, child).await;
    send(&connection, freeze_and_confirm(&name, 12)).await;

    let bodies = harness.bodies(4 + 2).await;
    let expected = [
        "accountChange 11 processed",
        "reverted 11 processed",
        "accountChange 11 processed",
        "accountChange 12 processed",
        "accountChange 11 confirmed",
        "accountChange 12 confirmed",
    ];
    assert_eq!(short(&bodies), expected);
    assert_eq!(bodies[1]["data"]["reason"], "replaced");
    let data = |at: usize| {
        let data = bodies[at]["data"]["data"].as_str().expect("text");
        BASE64_STANDARD.decode(data).expect("base 64")
    };
    assert_eq!([0, 2, 4].map(data), [&b"loser"[..], b"winner", b"winner"]);
    assert_eq!(bodies[1]["data"]["messageId"], id_of(&harness, 1).await);
    indexer.stop().await;
}

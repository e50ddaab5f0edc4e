//! Operational messages: an owner is told what becomes of a webhook by another one.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use sluice_geyser::scripted::Code;
use sluice_harness::indexer::{IndexerHarness, send};
use sluice_store::{
    Access, ApiKeyId, ApiKeySecret, EventKinds, Filters, NewApiKey, OperationKind, Quotas, Scopes,
    Timestamp, WebhookDefinition, WebhookId,
};
use sluice_testkit::{
    updates::{freeze_and_confirm, key, whole},
    webhook_receiver::{Reply, WebhookReceiver},
};
use tokio::time::sleep;

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

/// When keys and webhooks were made.
const NOW: Timestamp = Timestamp::from_unix_millis(1_767_225_600_000);

on_both!(
    an_owner_is_told_once_that_an_endpoint_is_gone,
    an_owner_is_told_of_an_endpoint_that_fails_a_filter_that_is_refused_and_a_gap,
    a_webhook_that_watches_nothing_is_told_of_the_others_and_never_of_itself,
    an_owner_is_told_of_the_quotas_that_are_used_up_and_of_no_others,
);

/// A webhook about nothing that happens, which is told of the others.
async fn told(harness: &IndexerHarness) -> WebhookId {
    let quiet = WebhookDefinition {
        filters: Filters {
            accounts: vec![key(55)],
            programs: Vec::new(),
            ..Filters::default()
        },
        ..harness.definition()
    };
    let id = harness.create(9, quiet).await;
    let kinds = BTreeSet::from(OperationKind::ALL);
    let set = harness.store.set_operations(&Access::All, &id, &kinds);
    set.await.expect("sets").expect("exists");
    id
}

/// A webhook on the program whose endpoint always answers like this.
async fn answering(harness: &IndexerHarness, reply: Reply) -> (WebhookId, WebhookReceiver) {
    let receiver = WebhookReceiver::always(reply).await.expect("a free port");
    let definition = WebhookDefinition {
        url: receiver.url(),
        ..harness.definition()
    };
    (harness.create(1, definition).await, receiver)
}

async fn an_owner_is_told_once_that_an_endpoint_is_gone(mut harness: IndexerHarness) {
    let (gone, _receiver) = answering(&harness, Reply::Status(410, String::new())).await;
    told(&harness).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    let bodies = harness.bodies(1).await;
    assert_eq!(bodies[0]["type"], "endpoint.disabled");
    assert_eq!(bodies[0]["data"]["webhook"], gone.as_str());
    let reason = bodies[0]["data"]["reason"].as_str().expect("text");
    assert!(reason.contains("410"), "{reason}");
    indexer.stop().await;

    // Another process finds the same, and knows that it was told.
    let indexer = harness.start().await;
    harness.accept().await;
    let revision = harness.store.webhook_revision().await.expect("reads");
    let refused = harness
        .store
        .record_refusal(&gone, revision, "too many keys");
    assert!(refused.await.expect("records"));
    let bodies = harness.bodies(2).await;
    assert_eq!(bodies[1]["type"], "filter.refused", "and nothing again");
    indexer.stop().await;
}

async fn an_owner_is_told_of_an_endpoint_that_fails_a_filter_that_is_refused_and_a_gap(
    mut harness: IndexerHarness,
) {
    let (failing, receiver) = answering(&harness, Reply::Status(500, String::new())).await;
    told(&harness).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    for number in 11..=40 {
        send(&connection, whole(&name, number)).await;
        send(&connection, freeze_and_confirm(&name, number)).await;
    }
    indexer.until_checkpoint(40).await;
    receiver.until(1).await.expect("is tried");
    let bodies = harness.bodies(1).await;
    assert_eq!(bodies[0]["type"], "endpoint.failing");
    assert_eq!(bodies[0]["data"]["webhook"], failing.as_str());

    let revision = harness.store.webhook_revision().await.expect("reads");
    let refused = harness
        .store
        .record_refusal(&failing, revision, "too many keys");
    assert!(refused.await.expect("records"));
    let bodies = harness.bodies(2).await;
    assert_eq!(bodies[1]["type"], "filter.refused");
    assert_eq!(bodies[1]["data"]["reason"], "too many keys");

    let too_old = "broadcast from 41 is not available, last available: 500";
    harness.server.refuse_next(Code::OutOfRange, too_old);
    drop(connection);
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(500));
    send(&connection, whole(&name, 500)).await;
    send(&connection, freeze_and_confirm(&name, 500)).await;
    // Its own, and that of the other.
    let bodies = harness.bodies(4).await;
    let gaps: Vec<&Value> = bodies.iter().filter(|body| body["type"] == "gap").collect();
    assert_eq!(gaps.len(), 2);
    let of_other = gaps.iter().find(|gap| !gap["data"]["webhook"].is_null());
    let of_other = of_other.expect("is told");
    assert_eq!(of_other["data"]["webhook"], failing.as_str());
    assert_eq!(of_other["data"]["firstSlot"], 41);
    assert_eq!(of_other["data"]["lastSlot"], 499);
    indexer.stop().await;
}

async fn a_webhook_that_watches_nothing_is_told_of_the_others_and_never_of_itself(
    mut harness: IndexerHarness,
) {
    let told_alone = |url| WebhookDefinition {
        url,
        events: EventKinds::default(),
        filters: Filters::default(),
        operations: OperationKind::ALL.into_iter().collect(),
        ..harness.definition()
    };
    let definition = told_alone(harness.receiver.url());
    let told = harness.create(9, definition).await;
    // It is told as well, refuses it, and must not be told of that.
    let deaf = WebhookReceiver::always(Reply::Status(410, String::new())).await;
    let deaf = deaf.expect("a free port");
    let definition = told_alone(deaf.url());
    let deaf_one = harness.create(8, definition).await;
    let (gone, _receiver) = answering(&harness, Reply::Status(410, String::new())).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;

    let bodies = harness.bodies(2).await;
    let subjects: BTreeSet<_> = bodies
        .iter()
        .map(|body| {
            assert_eq!(body["type"], "endpoint.disabled");
            assert_eq!(body["webhookId"], told.as_str());
            body["data"]["webhook"].as_str().expect("text").to_owned()
        })
        .collect();
    let expected = BTreeSet::from([gone.to_string(), deaf_one.to_string()]);
    assert_eq!(subjects, expected);
    assert_eq!(deaf.received().len(), 1, "of the one that is gone, alone");
    let of_deaf = harness.store.messages_after(&Access::All, &deaf_one, 0, 9);
    let of_deaf = of_deaf.await.expect("reads").expect("exists").messages;
    assert!(
        of_deaf
            .iter()
            .all(|message| message.body.contains(gone.as_str()))
    );
    indexer.stop().await;
}

async fn an_owner_is_told_of_the_quotas_that_are_used_up_and_of_no_others(harness: IndexerHarness) {
    const SLOTS: u32 = 4;
    let quotas = Quotas {
        webhooks: Some(2),
        // The program that the second of them watches.
        addresses: Some(1),
        stored_mib: Some(100),
        messages_per_second: Some(10_000),
        delivery_slots: Some(SLOTS),
    };
    let owner = limited_key(&harness, quotas).await;
    let told_alone = WebhookDefinition {
        events: EventKinds::default(),
        filters: Filters::default(),
        operations: BTreeSet::from([OperationKind::Quota]),
        ..harness.definition()
    };
    let told = harness.create_owned(9, &owner, told_alone).await;
    let silent = WebhookReceiver::always(Reply::Hang).await;
    let silent = silent.expect("a free port");
    let hanging = WebhookDefinition {
        url: silent.url(),
        ..harness.definition()
    };
    harness.create_owned(1, &owner, hanging).await;
    let mut harness = harness;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    // It holds half of what its owner may have under way, and has more to send.
    for number in 11..=20 {
        send(&connection, whole(&name, number)).await;
        send(&connection, freeze_and_confirm(&name, number)).await;
    }
    indexer.until_checkpoint(20).await;
    let bodies = harness.bodies(3).await;
    let used_up: BTreeSet<_> = bodies
        .iter()
        .map(|body| {
            assert_eq!(body["type"], "quota");
            assert_eq!(body["webhookId"], told.as_str());
            let data = &body["data"];
            let number = |name: &str| data[name].as_u64().expect("a number");
            let quota = data["quota"].as_str().expect("text");
            (quota.to_owned(), number("used"), number("limit"))
        })
        .collect();
    let (used, limit) = (u64::from(SLOTS / 2), u64::from(SLOTS));
    let expected = BTreeSet::from([
        ("webhooks".to_owned(), 2, 2),
        ("addresses".to_owned(), 1, 1),
        ("deliverySlots".to_owned(), used, limit),
    ]);
    assert_eq!(used_up, expected);
    // The writer has looked again by then.
    sleep(Duration::from_secs(6)).await;
    assert_eq!(harness.receiver.received().len(), 3, "once a day each");
    indexer.stop().await;
}

/// A key with these limits.
async fn limited_key(harness: &IndexerHarness, quotas: Quotas) -> Access {
    let new = NewApiKey {
        id: ApiKeyId::from_random([1; 8]),
        name: "limited".to_owned(),
        hash: ApiKeySecret::from_random([1; 32]).hash(),
        created: NOW,
        expires: None,
        scopes: Scopes::ALL,
    };
    let created = harness.store.create_limited_api_key(&new, quotas).await;
    created.expect("creates");
    Access::Key(new.id)
}

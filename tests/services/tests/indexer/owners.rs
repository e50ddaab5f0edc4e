//! Operational messages: an owner is told what becomes of a webhook by another one.

use std::collections::BTreeSet;

use serde_json::Value;
use sluice_geyser::scripted::Code;
use sluice_harness::indexer::{IndexerHarness, freeze_and_confirm, send};
use sluice_store::{Access, Filters, OperationKind, WebhookDefinition, WebhookId};
use sluice_testkit::{
    updates::{key, whole},
    webhook_receiver::{Reply, WebhookReceiver},
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    an_owner_is_told_once_that_an_endpoint_is_gone,
    an_owner_is_told_of_an_endpoint_that_fails_a_filter_that_is_refused_and_a_gap,
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
    assert_eq!(bodies[1]["type"], "filterRefused", "and nothing again");
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
    assert_eq!(bodies[1]["type"], "filterRefused");
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

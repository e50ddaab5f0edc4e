//! Delivery of stored messages, across restarts and kills of the process.

use std::{sync::Arc, time::SystemTime};

use sluice_store::{
    BodyTemplate, Commit, Commitment, EventKind, MessageId, MessageKind, NewMessage, Timestamp,
};

use sluice_harness::indexer::{IndexerHarness, freeze_and_confirm, send};
use sluice_testkit::{updates::whole, webhook_receiver::ReceivedRequest};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    what_was_stored_before_a_crash_is_delivered_after_it,
    an_indexer_killed_again_and_again_loses_nothing_and_repeats_only_the_same,
);

#[expect(
    clippy::disallowed_methods,
    reason = "a row of a test may have any time"
)]
async fn what_was_stored_before_a_crash_is_delivered_after_it(harness: IndexerHarness) {
    let id = harness.webhook(1).await;
    let messages = [NewMessage {
        id: MessageId::from_bytes([5; 32]),
        webhook: id,
        kind: MessageKind::Event(EventKind::Transaction),
        commitment: Commitment::Confirmed,
        slot: 50,
        order_key: None,
        body: BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from("}")),
    }];
    let now = Timestamp::from(SystemTime::now());
    let commit = Commit::slot(Commitment::Confirmed, 50, &messages, now);
    harness.store.commit(&commit).await.expect("commits");
    let indexer = harness.start().await;
    assert_eq!(harness.bodies(1).await[0]["sequence"], 1);
    indexer.stop().await;
}

async fn an_indexer_killed_again_and_again_loses_nothing_and_repeats_only_the_same(
    mut harness: IndexerHarness,
) {
    const SLOTS: u64 = 12;
    harness.webhook(1).await;
    let mut indexer = harness.start().await;
    let (mut connection, mut name) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    let mut next = 11;
    while next < 11 + SLOTS {
        // One slot is known to be stored when the indexer dies; the other may be anywhere.
        for number in next..next + 2 {
            send(&connection, whole(&name, number)).await;
            send(&connection, freeze_and_confirm(&name, number)).await;
        }
        indexer.until_checkpoint_past(next).await;
        indexer.kill().await;
        drop(connection);
        indexer = harness.start().await;
        let accepted = harness.accept().await;
        connection = accepted.0;
        name = accepted.1.slots.expect("always");
        next = accepted.1.from_slot.expect("there is a checkpoint");
    }
    let wait = async {
        loop {
            let stats = harness.store.queue_stats().await.expect("read");
            if stats.pending == 0 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    sluice_harness::indexer::soon(wait).await;

    let received = harness.received(1).await;
    let mut by_id = std::collections::BTreeMap::new();
    for ReceivedRequest { headers, body, .. } in received {
        let id = headers["webhook-id"].to_str().expect("ascii").to_owned();
        let known = by_id.entry(id).or_insert_with(|| body.clone());
        assert_eq!(known, &body, "the same id, the same body");
    }
    let mut sequences: Vec<_> = by_id
        .values()
        .map(|body| {
            let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
            body["sequence"].as_u64().expect("a number")
        })
        .collect();
    sequences.sort_unstable();
    let expected: Vec<_> = (1..=3 * (next - 11)).collect();
    assert_eq!(sequences, expected, "contiguous, each once");
    indexer.stop().await;
}

//! Delivery of stored messages, across restarts and kills of the process.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use sluice_store::{
    Access, BodyTemplate, Commit, Commitment, DeliveryQuery, EventKind, MessageId, MessageKind,
    NewMessage, Timestamp, WebhookId,
};
use tokio::time::sleep;

use sluice_harness::indexer::{IndexerHarness, send};
use sluice_testkit::{
    updates::{freeze_and_confirm, whole},
    webhook_receiver::{ReceivedRequest, Reply, WebhookReceiver},
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    what_was_stored_before_a_crash_is_delivered_after_it,
    an_indexer_killed_again_and_again_loses_nothing_and_repeats_only_the_same,
);

async fn what_was_stored_before_a_crash_is_delivered_after_it(harness: IndexerHarness) {
    let id = harness.webhook(1).await;
    store_one(&harness, id).await;
    let indexer = harness.start().await;
    assert_eq!(harness.bodies(1).await[0]["sequence"], 1);
    indexer.stop().await;
}

/// Stores a message for this webhook, due at once. Returns when it was.
#[expect(
    clippy::disallowed_methods,
    reason = "a row of a test may have any time"
)]
async fn store_one(harness: &IndexerHarness, webhook: WebhookId) -> Timestamp {
    let messages = [NewMessage {
        id: MessageId::from_bytes([5; 32]),
        webhook,
        kind: MessageKind::Event(EventKind::Transaction),
        commitment: Commitment::Confirmed,
        slot: 50,
        order_key: None,
        body: BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from("}")),
    }];
    let now = Timestamp::from(SystemTime::now());
    let commit = Commit::slot(Commitment::Confirmed, 50, &messages, now);
    harness.store.commit(&commit).await.expect("commits");
    now
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_whose_clocks_are_an_hour_off_keep_to_each_other_s_leases() {
    const HOUR: Duration = Duration::from_secs(3600);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let harness = IndexerHarness::postgres(folder, "clocks_an_hour_off").await;
    let receiver = WebhookReceiver::in_turn([Reply::Hang]).await;
    let receiver = receiver.expect("a free port");
    let mut definition = harness.definition();
    definition.url = receiver.url();
    let id = harness.create(1, definition).await;
    store_one(&harness, id.clone()).await;

    let now = async || {
        let now = harness.store.server_time().await.expect("reads");
        now.expect("a server has a clock")
    };
    let behind = harness.start_on_host(now().await.before(HOUR));
    receiver.until(1).await.expect("is attempted");
    let ahead = harness.start_on_host(now().await.after(HOUR));
    ahead.until_ready(|_, body| body["standby"] == true).await;
    // It looks for what is due several times.
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        receiver.received().len(),
        1,
        "the lease of the one holds for the other"
    );
    let stored = harness
        .store
        .deliveries(&Access::All, &id, DeliveryQuery::default(), 1)
        .await;
    let until = stored.expect("reads").expect("exists")[0]
        .delivery
        .next_attempt_at;
    let now = harness.store.server_time().await.expect("reads");
    let now = now.expect("a server has a clock");
    assert!(
        until > Some(now) && until < Some(now.after(Duration::from_secs(60))),
        "{until:?}"
    );
    behind.abort().await.expect("runs");
    ahead.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_due_before_the_host_s_clock_was_set_back_by_an_hour_does_not_wait_for_it() {
    const HOUR: Duration = Duration::from_secs(3600);
    let harness = IndexerHarness::sqlite().await;
    let receiver = WebhookReceiver::in_turn([Reply::Accept]).await;
    let receiver = receiver.expect("a free port");
    let mut definition = harness.definition();
    definition.url = receiver.url();
    let id = harness.create(1, definition).await;
    let stored = store_one(&harness, id).await;
    let indexer = harness.start_on_host(stored.before(HOUR));
    receiver.until(1).await.expect("is attempted");
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

//! Operations of the indexer: readiness, metrics, outages of the database, heartbeats.

use std::{process::Command, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use sluice_geyser::scripted::Code;
use sluice_store::{
    Access, EventKind, WebhookDefinition,
    testing::{Disk, PrivateCluster},
};
use tokio::time::{sleep, timeout};

use sluice_harness::indexer::{Indexer, IndexerHarness, PATIENCE, send, soon};
use sluice_testkit::{
    small_disk::SmallDisk,
    updates::{account_of, block, created, freeze_and_confirm, key, program, whole},
};

use crate::{
    expectations::{Ending, Surroundings},
    linked_server::{LinkedServer, folder_of_a_server},
    on_both,
};

/// How long a probe may take: some supervisors wait for a second, and the rest is for a busy machine. Whoever waits for a database
/// that hangs takes at least the five seconds that the store waits for a connection.
const PROBE_DEADLINE: Duration = Duration::from_secs(3);

on_both!(
    an_outage_of_the_stream_shows_in_the_readiness_and_passes,
    the_metrics_count_each_stage_from_the_stream_to_the_endpoint,
    what_a_long_slot_emits_is_stored_in_pieces_with_the_checkpoint_in_the_last,
    a_webhook_that_asks_for_it_gets_signs_of_life_numbered_like_everything_else,
);

async fn an_outage_of_the_stream_shows_in_the_readiness_and_passes(mut harness: IndexerHarness) {
    let indexer = harness.start().await;
    let (status, body) = indexer.ready().await;
    assert_eq!(
        (status, &body["ready"]),
        (503, &Value::from(false)),
        "no slot seen yet"
    );
    let (connection, name) = harness.listening().await;
    let body = indexer.until_ready(|status, _| status == 200).await;
    assert_eq!(
        (&body["ready"], &body["reason"]),
        (&true.into(), &Value::Null)
    );
    assert_eq!(body["slot"], 10);
    indexer.until_checkpoint(10).await;

    harness.server.refuse_next(Code::Unavailable, "down");
    connection
        .fail(Code::Unavailable, "down")
        .await
        .expect("the client is there");
    let body = indexer.until_ready(|status, _| status == 503).await;
    let reason = body["reason"].as_str().expect("a reason");
    assert!(reason.contains("down"), "{reason}");
    let (connection, _) = harness.accept().await;
    send(&connection, [created(&name, 11), block(11)]).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    indexer.until_ready(|status, _| status == 200).await;
    indexer.until_checkpoint(11).await;
    indexer.stop().await;
}

#[tokio::test]
async fn a_database_file_that_is_gone_for_a_while_shows_in_the_readiness() {
    let harness = IndexerHarness::sqlite().await;
    let (here, away) = (
        harness.file().expect("an SQLite file").to_owned(),
        harness
            .file()
            .expect("an SQLite file")
            .with_extension("away"),
    );
    let move_away = || std::fs::rename(&here, &away).expect("moves the database away");
    let put_back = async || std::fs::rename(&away, &here).expect("puts it back");
    survive_outage(harness, "is gone", move_away, put_back).await;
}

#[tokio::test]
async fn a_disk_that_is_full_for_a_while_shows_in_the_readiness() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(disk) = SmallDisk::mount(folder.path(), "64m").expect("mount runs") else {
        eprintln!("not tried: only root may make a disk of its own");
        return;
    };
    let harness = IndexerHarness::sqlite_in(folder.path()).await;
    let fill = || drop(disk.fill().expect("fills"));
    let make_room = async || std::fs::remove_file(folder.path().join("ballast")).expect("removes");
    survive_outage(harness, "the disk of the database is full", fill, make_room).await;
}

#[tokio::test]
async fn a_database_server_that_is_killed_shows_in_the_readiness() {
    let folder = folder_of_a_server();
    let cluster = PrivateCluster::start(&folder.path().join("cluster"), Disk::DoesNotWait);
    let cluster = Arc::new(cluster.expect("PostgreSQL starts"));
    let harness = IndexerHarness::on_server(Arc::clone(&cluster), "killed").await;
    let kill = || {
        let pid = cluster.server_pid().expect("runs").to_string();
        let killed = Command::new("kill").args(["-9", &pid]).status();
        assert!(killed.expect("kill runs").success());
    };
    let boot = async || {
        // The children of the killed server need a moment to notice.
        while cluster.boot().is_err() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    survive_outage(harness, "database", kill, boot).await;
}

#[tokio::test]
async fn a_database_server_that_hangs_shows_in_the_readiness_which_does_not_wait_for_it() {
    let server = LinkedServer::start("hangs").await;
    let indexer = server.harness.start_on_database(&server.url);
    indexer.until_ready(|_, body| body["leads"] == true).await;
    server.link.freeze(true);
    let is_silent = |body: &Value| {
        let reason = body["reason"].as_str();
        reason.is_some_and(|reason| reason.starts_with("the database has not answered for "))
    };
    let probe = async || {
        let answer = timeout(PROBE_DEADLINE, indexer.ready()).await;
        answer.expect("a supervisor does not wait longer")
    };
    let silent = async {
        loop {
            let (status, body) = probe().await;
            if is_silent(&body) {
                return (status, body);
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let (status, body) = soon(silent).await;
    assert_eq!((status, &body["checkpoint"]), (503, &Value::Null));
    server.link.freeze(false);
    indexer.until_ready(|_, body| !is_silent(body)).await;
}

/// Lets an indexer lose its database in the middle of its work. Its readiness must give a reason with this
/// word, and it must go on where it was when the database is back.
async fn survive_outage(
    mut harness: IndexerHarness,
    word: &str,
    away: impl FnOnce(),
    back: impl AsyncFnOnce(),
) {
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    away();
    let body = indexer.until_ready(|status, _| status == 503).await;
    let reason = body["reason"].as_str().expect("a reason");
    assert!(reason.contains(word), "{reason}");
    // A slot that cannot be stored ends the session; it is asked for again once the database is back.
    for update in [created(&name, 11), block(11)] {
        let _ = connection.send(update).await;
    }
    for update in freeze_and_confirm(&name, 11) {
        let _ = connection.send(update).await;
    }
    sleep(Duration::from_millis(300)).await;
    soon(back()).await;
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11));
    send(&connection, [created(&name, 11), block(11)]).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    indexer
        .until_ready(|status, body| status == 200 && body["checkpoint"] == 11)
        .await;
    indexer.stop().await;
}

async fn the_metrics_count_each_stage_from_the_stream_to_the_endpoint(mut harness: IndexerHarness) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    harness.bodies(3).await;
    let expected = [
        "sluice_indexer_slot{name=\"seen\"} 11",
        "sluice_indexer_slot{name=\"confirmed\"} 11",
        "sluice_indexer_messages_stored_total{name=\"confirmed\"} 3",
        "sluice_indexer_delivery_attempts_total{name=\"delivered\"} 3",
        "sluice_indexer_stage_latency_seconds_count{name=\"stored\"} 1",
        "sluice_indexer_stage_latency_seconds_count{name=\"pending\"} 3",
        "sluice_indexer_stage_latency_seconds_count{name=\"attempted\"} 3",
        "sluice_indexer_stage_latency_seconds_count{name=\"delivered\"} 3",
        "sluice_indexer_leader 1",
        "sluice_indexer_queue{name=\"pending\"} 0",
        "sluice_indexer_breakers_not_closed 0",
    ];
    until_metrics(&indexer, &expected).await;
    let text = indexer.metrics().await;
    let age = text
        .lines()
        .find_map(|line| line.strip_prefix("sluice_indexer_stream_age_seconds "))
        .and_then(|age| age.parse::<f64>().ok());
    assert!(age.is_some_and(|age| age > 0.0), "{text}");
    indexer.stop().await;
}

/// Waits until the metrics have all of these lines.
async fn until_metrics(indexer: &Indexer, expected: &[&str]) {
    let mut text = String::new();
    let wait = async {
        loop {
            text = indexer.metrics().await;
            if expected
                .iter()
                .all(|line| text.lines().any(|each| each == *line))
            {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let done = timeout(PATIENCE, wait).await;
    assert!(done.is_ok(), "{text}");
}

async fn what_a_long_slot_emits_is_stored_in_pieces_with_the_checkpoint_in_the_last(
    mut harness: IndexerHarness,
) {
    /// Two full pieces, and the beginning of a third.
    const ACCOUNTS: u8 = 200;
    let definition = WebhookDefinition {
        events: [EventKind::AccountChange].into_iter().collect(),
        ..harness.definition()
    };
    let id = harness.create(1, definition).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    let write = |number| account_of(11, key(number), program(), Bytes::from_static(b"data"));
    send(&connection, [created(&name, 11)]).await;
    send(&connection, (0..ACCOUNTS).map(write)).await;
    send(&connection, [block(11)]).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    indexer.until_checkpoint(11).await;
    let page = harness
        .store
        .messages_after(&Access::All, &id, 0, 500)
        .await;
    let stored = page.expect("read").expect("exists").messages;
    let sequences: Vec<_> = stored.iter().map(|message| message.sequence).collect();
    assert_eq!(sequences, (1..=u64::from(ACCOUNTS)).collect::<Vec<_>>());
    let expected = [
        "sluice_indexer_messages_stored_total{name=\"confirmed\"} 200",
        "sluice_indexer_stage_latency_seconds_count{name=\"stored\"} 3",
        "sluice_indexer_delivery_attempts_total{name=\"delivered\"} 200",
        "sluice_indexer_queue{name=\"pending\"} 0",
    ];
    until_metrics(&indexer, &expected).await;
    assert_eq!(harness.bodies(usize::from(ACCOUNTS)).await.len(), 200);
    indexer.stop().await;
}

async fn a_webhook_that_asks_for_it_gets_signs_of_life_numbered_like_everything_else(
    mut harness: IndexerHarness,
) {
    let definition = WebhookDefinition {
        heartbeat: Some(Duration::from_secs(1)),
        ..harness.definition()
    };
    let digest = definition.filters.digest();
    let id = harness.create(1, definition).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    indexer.until_checkpoint(10).await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    let received = harness.received(7).await;
    let mut bodies: Vec<Value> = received
        .iter()
        .map(|request| serde_json::from_slice(&request.body).expect("JSON"))
        .collect();
    bodies.sort_by_key(|body| body["sequence"].as_u64());
    let sequences: Vec<_> = bodies
        .iter()
        .filter_map(|body| body["sequence"].as_u64())
        .collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
    let heartbeats: Vec<_> = bodies
        .iter()
        .filter(|body| body["type"] == "heartbeat")
        .collect();
    assert!(heartbeats.len() >= 3, "{bodies:#?}");
    let last = heartbeats.last().expect("some");
    assert_eq!(last["webhookId"], id.as_str());
    assert_eq!(last["data"]["lastSlot"], 11);
    assert_eq!(last["data"]["filter"]["digest"], digest);
    assert_eq!(last["data"]["filter"]["programs"], 1);
    let sequence = last["sequence"].as_u64().expect("a number");
    assert_eq!(last["data"]["lastSequence"], sequence - 1);
    indexer.stop().await;
}

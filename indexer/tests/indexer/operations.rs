//! The indexer says how it does: to probes, to Prometheus and to receivers.

use std::time::Duration;

use serde_json::Value;
use sluice_geyser::scripted::Code;
use sluice_store::WebhookDefinition;
use tokio::time::sleep;

use crate::{
    machine::{Machine, send, settle},
    updates::{block, content},
};

#[tokio::test]
async fn outages_of_stream_and_database_show_in_the_readiness_and_pass() {
    let mut machine = Machine::new().await;
    let indexer = machine.start().await;
    let (status, body) = indexer.ready().await;
    assert_eq!(
        (status, &body["ready"]),
        (503, &Value::from(false)),
        "no slot seen yet"
    );
    let (connection, name) = machine.listening().await;
    let body = indexer.until_ready(|status, _| status == 200).await;
    assert_eq!(
        (&body["ready"], &body["reason"]),
        (&true.into(), &Value::Null)
    );
    assert_eq!(body["slot"], 10);
    indexer.until_checkpoint(10).await;

    machine.server.refuse_next(Code::Unavailable, "down");
    connection
        .fail(Code::Unavailable, "down")
        .await
        .expect("the client is there");
    let body = indexer.until_ready(|status, _| status == 503).await;
    let reason = body["reason"].as_str().expect("a reason");
    assert!(reason.contains("down"), "{reason}");
    let (connection, _) = machine.accept().await;
    send(&connection, [block(11)]).await;
    send(&connection, settle(&name, 11)).await;
    indexer.until_ready(|status, _| status == 200).await;
    indexer.until_checkpoint(11).await;

    let away = machine.path.with_extension("away");
    std::fs::rename(&machine.path, &away).expect("moves the database away");
    let body = indexer.until_ready(|status, _| status == 503).await;
    let reason = body["reason"].as_str().expect("a reason");
    assert!(reason.contains("is gone"), "{reason}");
    // A slot that cannot be stored ends the session; it is asked for again once the file is back.
    for update in settle(&name, 12) {
        let _ = connection.send(block(12)).await;
        let _ = connection.send(update).await;
    }
    sleep(Duration::from_millis(300)).await;
    std::fs::rename(&away, &machine.path).expect("puts it back");
    let (connection, request) = machine.accept().await;
    assert_eq!(request.from_slot, Some(12));
    send(&connection, [block(12)]).await;
    send(&connection, settle(&name, 12)).await;
    indexer
        .until_ready(|status, body| status == 200 && body["checkpoint"] == 12)
        .await;
    indexer.stop().await;
}

#[tokio::test]
async fn the_metrics_tell_of_the_way_from_the_stream_to_the_receiver() {
    let mut machine = Machine::new().await;
    machine.webhook(1).await;
    let indexer = machine.start().await;
    let (connection, name) = machine.listening().await;
    send(&connection, content(11)).await;
    send(&connection, settle(&name, 11)).await;
    machine.bodies(3).await;
    let expected = [
        "sluice_indexer_slot{name=\"seen\"} 11",
        "sluice_indexer_slot{name=\"confirmed\"} 11",
        "sluice_indexer_messages_stored_total{name=\"confirmed\"} 3",
        "sluice_indexer_delivery_attempts_total{name=\"accepted\"} 3",
        "sluice_indexer_stage_latency_seconds_count{name=\"stored\"} 1",
        "sluice_indexer_stage_latency_seconds_count{name=\"queued\"} 3",
        "sluice_indexer_stage_latency_seconds_count{name=\"attempt\"} 3",
        "sluice_indexer_leading 1",
        "sluice_indexer_queue{name=\"pending\"} 0",
        "sluice_indexer_breakers_not_closed 0",
    ];
    let mut text = String::new();
    let wait = async {
        loop {
            text = indexer.get("/metrics").await.text().await.expect("text");
            if expected
                .iter()
                .all(|line| text.lines().any(|each| each == *line))
            {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(10), wait).await;
    assert!(done.is_ok(), "{text}");
    indexer.stop().await;
}

#[tokio::test]
async fn a_webhook_that_asks_for_it_gets_signs_of_life_numbered_like_everything_else() {
    let mut machine = Machine::new().await;
    let definition = WebhookDefinition {
        heartbeat: Some(Duration::from_secs(1)),
        ..machine.definition()
    };
    let digest = definition.filters.digest();
    let id = machine.create(1, definition).await;
    let indexer = machine.start().await;
    let (connection, name) = machine.listening().await;
    indexer.until_checkpoint(10).await;
    send(&connection, content(11)).await;
    send(&connection, settle(&name, 11)).await;
    let received = machine.received(7).await;
    let mut bodies: Vec<Value> = received
        .iter()
        .map(|(_, body)| serde_json::from_slice(body).expect("JSON"))
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

//! Events to their webhooks: at the commitment asked for, signed and in order.

use std::{io::Read, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use cpmm::ExchangeIds;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sluice_geyser::{Body, InnerInstruction, Instruction, SlotStatus, Update, scripted::Code};
use sluice_store::{Commitment, EventKind, Filters, Secret, WebhookDefinition};
use tokio::time::sleep;

use sluice_harness::indexer::{IndexerHarness, send, soon};
use sluice_testkit::{
    updates::{
        account_of, block, created, freeze_and_confirm, key, program, slot, transaction, whole,
    },
    webhook_receiver::ReceivedRequest,
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    events_of_a_confirmed_slot_arrive_signed_and_in_order,
    each_webhook_is_sent_events_at_the_commitment_it_chose,
    a_long_body_is_compressed_for_those_who_ask_for_it,
    the_exchanges_events_arrive_with_their_names_amounts_and_mints,
    a_transaction_whose_logs_were_cut_says_so_and_is_counted,
    a_broken_connection_resumes_after_the_checkpoint_and_a_replay_reaches_no_webhook_twice,
    a_second_indexer_stands_by_and_takes_over,
);

fn verifier(number: u8) -> standardwebhooks::Webhook {
    standardwebhooks::Webhook::new(Secret::from_random([number; 32]).expose()).expect("valid")
}

async fn events_of_a_confirmed_slot_arrive_signed_and_in_order(mut harness: IndexerHarness) {
    let id = harness.webhook(1).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, [slot(&name, 11, SlotStatus::Processed)]).await;
    sleep(Duration::from_millis(300)).await;
    let early = harness.receiver.received().len();
    assert_eq!(early, 0, "nothing before the confirmation");
    send(&connection, [slot(&name, 11, SlotStatus::Confirmed)]).await;

    let bodies = harness.bodies(3).await;
    let kinds: Vec<_> = bodies
        .iter()
        .map(|body| body["type"].as_str().expect("text"))
        .collect();
    assert_eq!(kinds, ["transaction", "programEvent", "accountChange"]);
    let sequences: Vec<_> = bodies
        .iter()
        .map(|body| body["sequence"].as_u64())
        .collect();
    assert_eq!(sequences, [Some(1), Some(2), Some(3)]);
    for body in &bodies {
        assert_eq!(body["webhookId"], id.as_str());
        assert_eq!(
            (&body["slot"], &body["commitment"]),
            (&Value::from(11), &Value::from("confirmed"))
        );
        assert_eq!(body["timestamp"], "2026-01-01T00:00:00Z");
    }
    assert_eq!(bodies[0]["data"]["programs"][0], program().to_string());
    assert_eq!(bodies[1]["data"]["programId"], program().to_string());
    assert_eq!(bodies[2]["data"]["lamports"], u64::MAX);
    for ReceivedRequest { headers, body, .. } in harness.received(3).await {
        verifier(1)
            .verify(&body, &headers)
            .expect("a good signature");
    }
    indexer.stop().await;
}

async fn each_webhook_is_sent_events_at_the_commitment_it_chose(mut harness: IndexerHarness) {
    for (number, commitment) in (1..).zip(Commitment::ALL) {
        let definition = WebhookDefinition {
            commitment,
            events: [EventKind::AccountChange].into_iter().collect(),
            ..harness.definition()
        };
        harness.create(number, definition).await;
    }
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, whole(&name, 11)).await;
    for (count, status, commitment) in [
        (1, SlotStatus::Processed, "processed"),
        (2, SlotStatus::Confirmed, "confirmed"),
        (3, SlotStatus::Finalized, "finalized"),
    ] {
        send(&connection, [slot(&name, 11, status)]).await;
        let bodies = harness.bodies(count).await;
        assert_eq!(bodies[count - 1]["commitment"], commitment);
        assert_eq!(bodies[count - 1]["slot"], 11);
        assert_eq!(bodies[count - 1]["sequence"], 1);
    }
    indexer.stop().await;
}

async fn a_transaction_whose_logs_were_cut_says_so_and_is_counted(mut harness: IndexerHarness) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    let mut cut = transaction(11, 5);
    let Body::Transaction(content) = &mut cut.body else {
        panic!("a transaction")
    };
    content.log_messages.insert(1, "Log truncated".to_owned());
    send(
        &connection,
        [created(&name, 11), transaction(11, 4), cut, block(11)],
    )
    .await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    // The event that the second one logged after the cut is not known.
    let bodies = harness.bodies(3).await;
    let truncated = bodies.iter().map(|body| body["data"].get("logsTruncated"));
    let truncated: Vec<_> = truncated.map(Option::<&Value>::cloned).collect();
    assert_eq!(truncated, [None, None, Some(Value::Bool(true))]);
    let metrics = indexer.metrics().await;
    let line = "sluice_indexer_transactions_with_truncated_logs_total 1";
    assert!(metrics.lines().any(|each| each == line), "{metrics}");
    indexer.stop().await;
}

async fn a_long_body_is_compressed_for_those_who_ask_for_it(mut harness: IndexerHarness) {
    let definition = WebhookDefinition {
        gzip: true,
        ..harness.definition()
    };
    harness.create(1, definition).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    let data = Bytes::from(vec![0; 20_000]);
    let long = account_of(11, key(1), program(), data);
    send(&connection, [created(&name, 11), long, block(11)]).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    let ReceivedRequest { headers, body, .. } = harness.received(1).await.remove(0);
    assert_eq!(headers["content-encoding"], "gzip");
    assert!(body.len() < 2_000, "{}", body.len());
    let mut text = String::new();
    GzDecoder::new(&body[..])
        .read_to_string(&mut text)
        .expect("gzip");
    verifier(1)
        .verify(text.as_bytes(), &headers)
        .expect("the signature is of the text");
    let body: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(body["data"]["dataLength"], 20_000);
    indexer.stop().await;
}

async fn a_broken_connection_resumes_after_the_checkpoint_and_a_replay_reaches_no_webhook_twice(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    send(&connection, whole(&name, 12)).await;
    let before = harness.bodies(3).await;

    connection
        .fail(Code::Unavailable, "restarting")
        .await
        .expect("the client is there");
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(12));
    // A server may say more than it was asked for.
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    send(
        &connection,
        [created(&name, 12), transaction(12, 5), block(12)],
    )
    .await;
    send(&connection, freeze_and_confirm(&name, 12)).await;
    let after = harness.bodies(5).await;
    assert_eq!(after[..3], before);
    let sequences: Vec<_> = after[3..]
        .iter()
        .map(|body| body["sequence"].as_u64())
        .collect();
    assert_eq!(sequences, [Some(4), Some(5)]);
    let checkpoint = harness.store.checkpoint(Commitment::Confirmed).await;
    assert_eq!(checkpoint.expect("read"), Some(12));
    indexer.stop().await;
}

async fn a_second_indexer_stands_by_and_takes_over(mut harness: IndexerHarness) {
    harness.webhook(1).await;
    let first = harness.start().await;
    let (connection, name) = harness.listening().await;
    first.until_checkpoint(10).await;
    let second = harness.start().await;
    let body = second.until_ready(|_, body| body["standby"] == true).await;
    assert_eq!(body["ready"], true);

    first.kill().await;
    drop(connection);
    let (connection, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11));
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    harness.bodies(3).await;
    let (_, body) = second.ready().await;
    assert_eq!(body["standby"], false);
    soon(second.stop()).await;
}

/// A transaction in which a program deposits into a pool of the exchange, and swaps there: events as builds emitted them that had
/// no mints in them.
fn exchanged(slot: u64) -> Update {
    let exchange = ExchangeIds::MAINNET.program;
    let event = |discriminator: [u8; 8], amounts: std::ops::RangeInclusive<u64>, last: u8| {
        let mut event = discriminator.to_vec();
        event.extend(key(3).to_bytes());
        event.extend(amounts.flat_map(u64::to_le_bytes));
        event.push(last);
        STANDARD.encode(event)
    };
    let deposited = event([121, 163, 205, 201, 57, 218, 117, 60], 1..=7, 0);
    let swapped = event([64, 198, 205, 232, 38, 8, 113, 226], 11..=16, 1);
    let called = |accounts, discriminator: [u8; 8]| InnerInstruction {
        program_index: 1,
        accounts,
        data: discriminator.to_vec(),
        stack_height: Some(2),
    };
    let mut update = transaction(slot, 5);
    let Body::Transaction(content) = &mut update.body else {
        panic!("a transaction")
    };
    // The payer, the exchange, the program, the pool, three mints, and one in the place of all others.
    content.account_keys = vec![
        key(9),
        exchange,
        key(2),
        key(3),
        key(4),
        key(5),
        key(6),
        key(7),
    ];
    content.instructions = vec![Instruction {
        program_index: 2,
        accounts: vec![0],
        data: vec![1],
    }];
    let inner = vec![
        called(
            vec![0, 7, 3, 7, 7, 7, 7, 7, 7, 7, 4, 5, 6],
            [242, 35, 198, 137, 82, 225, 242, 182],
        ),
        called(
            vec![0, 7, 7, 3, 7, 7, 7, 7, 7, 7, 5, 4, 7],
            [143, 190, 90, 218, 196, 30, 51, 222],
        ),
    ];
    content.inner_instructions = vec![(0, inner)];
    content.log_messages = vec![
        format!("Program {} invoke [1]", key(2)),
        format!("Program {exchange} invoke [2]"),
        format!("Program data: {deposited}"),
        format!("Program {exchange} success"),
        format!("Program {exchange} invoke [2]"),
        format!("Program data: {swapped}"),
        format!("Program {exchange} success"),
        format!("Program {} success", key(2)),
    ];
    update
}

async fn the_exchanges_events_arrive_with_their_names_amounts_and_mints(
    mut harness: IndexerHarness,
) {
    let definition = WebhookDefinition {
        events: [EventKind::ProgramEvent].into_iter().collect(),
        filters: Filters {
            programs: vec![ExchangeIds::MAINNET.program],
            ..Filters::default()
        },
        ..harness.definition()
    };
    harness.create(1, definition).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, [created(&name, 11), exchanged(11), block(11)]).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    let bodies = harness.bodies(2).await;
    let text = |byte| key(byte).to_string();
    let expected = [
        (
            "LpChangeEvent",
            json!({ "poolId": text(3), "lpAmountBefore": 1, "token0VaultBefore": 2, "token1VaultBefore": 3,
                "token0Amount": 4, "token1Amount": 5, "token0TransferFee": 6, "token1TransferFee": 7, "changeType": 0 }),
            json!({ "token0Mint": text(4), "token1Mint": text(5), "lpMint": text(6) }),
        ),
        (
            "SwapEvent",
            json!({ "poolId": text(3), "inputVaultBefore": 11, "outputVaultBefore": 12, "inputAmount": 13,
                "outputAmount": 14, "inputTransferFee": 15, "outputTransferFee": 16, "baseInput": true }),
            json!({ "inputMint": text(5), "outputMint": text(4) }),
        ),
    ];
    for (body, (name, fields, mints)) in bodies.iter().zip(expected) {
        let data = &body["data"];
        assert_eq!(data["name"], name);
        assert_eq!(data["fields"], fields);
        assert_eq!(data["mints"], mints);
    }
    indexer.stop().await;
}

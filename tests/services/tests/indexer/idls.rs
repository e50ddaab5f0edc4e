//! IDLs: events are decoded by what their owner uploaded, else by what the program publishes.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::ZlibEncoder};
use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_geyser::scripted::Connection;
use sluice_harness::indexer::{Indexer, IndexerHarness, send, soon};
use sluice_store::{
    Access, ApiKeyId, ApiKeySecret, ChainIdl, Conditions, EventKind, NewApiKey, Scopes, Timestamp,
    UploadedIdl, WebhookDefinition, WebhookId,
};
use sluice_testkit::{
    rpc_node::RpcNode,
    updates::{freeze_and_confirm, key, program, whole},
};
use solana_pubkey::Pubkey;
use tokio::time::{Duration, sleep};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    an_uploaded_idl_decodes_for_its_owner_alone,
    what_a_program_publishes_decodes_for_all_without_an_idl_of_their_own,
    what_was_read_long_ago_is_read_again_or_forgotten,
);

const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

/// First bytes of Anchor's IDL accounts.
const ANCHOR: [u8; 8] = [24, 70, 98, 191, 58, 144, 123, 158];

/// An IDL by which the event of every transaction has this name, and the value 9.
fn idl(name: &str) -> String {
    let fields = json!([{ "name": "the_value", "type": "u8" }]);
    let idl = json!({
        "address": program().to_string(),
        "metadata": { "name": "counter", "version": "0.1.0", "spec": "0.1.0" },
        "instructions": [],
        "events": [{ "name": name, "discriminator": [1, 2, 3, 4, 5, 6, 7, 8] }],
        "types": [{ "name": name, "type": { "kind": "struct", "fields": fields } }],
    });
    idl.to_string()
}

/// A key of its own.
async fn tenant(harness: &IndexerHarness, number: u8) -> Access {
    let new = NewApiKey {
        id: ApiKeyId::from_random([number; 8]),
        name: format!("key {number}"),
        hash: ApiKeySecret::from_random([number; 32]).hash(),
        created: NOW,
        expires: None,
        scopes: Scopes::ALL,
    };
    harness.store.create_api_key(&new).await.expect("creates");
    Access::Key(new.id)
}

async fn upload(harness: &IndexerHarness, owner: &Access, name: &str) {
    let idl = UploadedIdl {
        text: idl(name),
        uploaded: NOW,
    };
    let uploaded = harness.store.upload_idl(owner, &program(), &idl).await;
    uploaded.expect("uploads");
}

/// A webhook on the program's events, of all names or of one.
async fn watching(
    harness: &IndexerHarness,
    number: u8,
    owner: &Access,
    name: Option<&str>,
) -> WebhookId {
    let definition = WebhookDefinition {
        events: [EventKind::ProgramEvent].into_iter().collect(),
        conditions: Conditions {
            event_names: name.map(str::to_owned).into_iter().collect(),
            ..Conditions::default()
        },
        ..harness.definition()
    };
    harness.create_owned(number, owner, definition).await
}

/// The program's account with an IDL, as Anchor packs it.
fn published(text: &[u8]) -> RawAccount {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).expect("packs");
    let packed = encoder.finish().expect("packs");
    let mut data = ANCHOR.to_vec();
    data.extend([7; 32]);
    data.extend(u32::try_from(packed.len()).expect("short").to_le_bytes());
    data.extend(packed);
    let (base, _) = Pubkey::find_program_address(&[], &program());
    RawAccount {
        pubkey: Pubkey::create_with_seed(&base, "anchor:idl", &program()).expect("short"),
        owner: program(),
        lamports: 1,
        data: Bytes::from(data),
    }
}

/// Name and fields in each of a webhook's messages.
async fn decoded(harness: &IndexerHarness, id: &WebhookId) -> Vec<(Value, Value)> {
    let page = harness.store.messages_after(&Access::All, id, 0, 500).await;
    let messages = page.expect("reads").expect("exists").messages;
    let of_message = |body: &str| {
        let body: Value = serde_json::from_str(body).expect("JSON");
        (body["data"]["name"].clone(), body["data"]["fields"].clone())
    };
    messages
        .iter()
        .map(|message| of_message(&message.body))
        .collect()
}

/// Lets slots pass, each with one event, until the last of a webhook's messages has this name. Returns the next slot.
async fn until_named(
    harness: &IndexerHarness,
    (indexer, connection, filter): (&Indexer, &Connection, &str),
    mut slot: u64,
    (id, name): (&WebhookId, &str),
) -> u64 {
    let wait = async {
        loop {
            send(connection, whole(filter, slot)).await;
            send(connection, freeze_and_confirm(filter, slot)).await;
            indexer.until_checkpoint(slot).await;
            slot += 1;
            let decoded = decoded(harness, id).await;
            if decoded.last().is_some_and(|(last, _)| last == name) {
                return slot;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    soon(wait).await
}

async fn an_uploaded_idl_decodes_for_its_owner_alone(mut harness: IndexerHarness) {
    let (one, other) = (tenant(&harness, 1).await, tenant(&harness, 2).await);
    upload(&harness, &one, "Counted").await;
    let of_one = watching(&harness, 1, &one, None).await;
    let of_other = watching(&harness, 2, &other, None).await;
    let named = watching(&harness, 3, &one, Some("Counted")).await;
    let named_of_other = watching(&harness, 4, &other, Some("Counted")).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    send(&connection, whole(&name, 11)).await;
    send(&connection, freeze_and_confirm(&name, 11)).await;
    indexer.until_checkpoint(11).await;
    let counted = (json!("Counted"), json!({ "theValue": 9 }));
    assert_eq!(
        decoded(&harness, &of_one).await,
        std::slice::from_ref(&counted)
    );
    let raw = (Value::Null, Value::Null);
    assert_eq!(decoded(&harness, &of_other).await, [raw]);
    assert_eq!(decoded(&harness, &named).await, [counted]);
    assert_eq!(decoded(&harness, &named_of_other).await, []);
    harness.received(3).await;

    upload(&harness, &other, "Told").await;
    let running = (&indexer, &connection, &*name);
    let next = until_named(&harness, running, 12, (&of_other, "Told")).await;
    let last = decoded(&harness, &of_one).await.pop();
    assert_eq!(last.expect("some").0, "Counted");
    let removed = harness.store.remove_idl(&one, &program()).await;
    assert!(removed.expect("removes"));
    upload(&harness, &one, "Anew").await;
    until_named(&harness, running, next, (&of_one, "Anew")).await;
    let last = decoded(&harness, &of_other).await.pop();
    assert_eq!(last.expect("some").0, "Told");
    indexer.stop().await;
}

async fn what_a_program_publishes_decodes_for_all_without_an_idl_of_their_own(
    mut harness: IndexerHarness,
) {
    let node = RpcNode::holding([published(idl("Published").as_bytes())]).await;
    let node = node.expect("a free port");
    harness.backfill_from(node.url());
    harness.read_idls();
    let (one, other) = (tenant(&harness, 1).await, tenant(&harness, 2).await);
    upload(&harness, &other, "Own").await;
    let of_one = watching(&harness, 1, &one, None).await;
    let of_other = watching(&harness, 2, &other, None).await;
    let indexer = harness.start().await;
    let (connection, name) = harness.listening().await;
    let running = (&indexer, &connection, &*name);
    until_named(&harness, running, 11, (&of_one, "Published")).await;
    let (_, fields) = decoded(&harness, &of_one).await.pop().expect("some");
    assert_eq!(fields, json!({ "theValue": 9 }));
    for (name, _) in decoded(&harness, &of_other).await {
        assert_eq!(name, "Own");
    }
    assert_eq!(node.count("getMultipleAccounts"), 1, "it is kept");
    indexer.stop().await;
}

async fn what_was_read_long_ago_is_read_again_or_forgotten(mut harness: IndexerHarness) {
    // It would be a hundred megabytes.
    let bomb = vec![b' '; 100 * 1024 * 1024];
    let node = RpcNode::holding([published(&bomb)]).await;
    let node = node.expect("a free port");
    harness.backfill_from(node.url());
    harness.read_idls();
    let long_ago = ChainIdl {
        text: Some(idl("Old")),
        read: Timestamp::from_unix_millis(0),
    };
    let nobodys = key(77);
    for program in [program(), nobodys] {
        let kept = harness.store.keep_chain_idl(&program, &long_ago).await;
        kept.expect("keeps");
    }
    watching(&harness, 1, &Access::All, None).await;
    let indexer = harness.start().await;
    let (connection, _) = harness.listening().await;
    let wait = async {
        loop {
            let of_program = harness.store.chain_idl(&program()).await.expect("reads");
            let of_nobody = harness.store.chain_idl(&nobodys).await.expect("reads");
            if of_program.is_some_and(|idl| idl.text.is_none()) && of_nobody.is_none() {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    soon(wait).await;
    drop(connection);
    indexer.stop().await;
}

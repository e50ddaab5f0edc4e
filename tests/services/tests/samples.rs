//! Tests that the API's sample payloads have the shape of the indexer's real ones.
//!
//! The one is made by the API, the other by the indexer, and neither knows the other: here it is seen that a receiver
//! cannot distinguish them by their shape.

use std::collections::BTreeMap;

use serde_json::Value;
use sluice_api::routes::webhooks::sample_body;
use sluice_client::webhooks::{Content, Message};
use sluice_geyser::{AccountUpdate, TransactionUpdate};
use sluice_indexer::events::{
    idl::Idls,
    operations, payload,
    program_events::{EventPath, ProgramEvent},
};
use sluice_store::{
    Breaker, Commitment, EventKind, EventKinds, Filters, MessageKind, OperationKind, Revision,
    Timestamp, TroubledWebhook, UsedUpQuota, WebhookDefinition, WebhookId,
};
use sluice_testkit::updates::key;
use solana_signature::Signature;

const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

const SLOT: u64 = 7;

fn definition() -> WebhookDefinition {
    let events: EventKinds = EventKind::ALL.into_iter().collect();
    let filters = Filters {
        accounts: vec![key(1)],
        programs: vec![key(2)],
        ..Filters::default()
    };
    WebhookDefinition::new("https://example.com/".to_owned(), events, filters)
}

/// The `data` that the indexer writes.
fn real_data(kind: EventKind) -> Value {
    let signature = Signature::default();
    match kind {
        EventKind::AccountChange => serde_json::to_value(payload::account_change(
            &AccountUpdate {
                slot: SLOT,
                pubkey: key(1),
                owner: key(2),
                lamports: 1,
                executable: false,
                rent_epoch: 0,
                data: Vec::new().into(),
                write_version: 1,
                txn_signature: Some(signature),
                is_startup: false,
            },
            None,
        ))
        .expect("keys are texts"),
        EventKind::Transaction => {
            let transaction = TransactionUpdate {
                slot: SLOT,
                index: 0,
                signature,
                is_vote: false,
                error: None,
                account_keys: vec![key(1), key(2)],
                writable: Vec::new(),
                instructions: Vec::new(),
                inner_instructions: Vec::new(),
                log_messages: Vec::new(),
                logs_missing: false,
                fee: 5_000,
                compute_units: Some(0),
                pre_balances: Vec::new(),
                post_balances: Vec::new(),
                pre_token_balances: Vec::new(),
                post_token_balances: Vec::new(),
            };
            payload::transaction(&transaction, &[key(2)])
        }
        EventKind::ProgramEvent => {
            let event = ProgramEvent {
                program: key(2),
                path: EventPath::Log { ordinal: 0 },
                data: vec![0; 8],
                invocation: None,
            };
            payload::program_event(&event, (&signature, 0), Idls::default().shared(), None)
        }
    }
}

/// Every path in a JSON value, with the type of what is there.
fn shape(value: &Value) -> BTreeMap<String, &'static str> {
    fn walk(path: &str, value: &Value, shape: &mut BTreeMap<String, &'static str>) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(members) => {
                for (name, member) in members {
                    walk(&format!("{path}.{name}"), member, shape);
                }
                "object"
            }
        };
        shape.insert(path.to_owned(), kind);
    }
    let mut found = BTreeMap::new();
    walk("", value, &mut found);
    found
}

#[test]
fn a_sample_has_the_shape_of_a_real_delivery() {
    let webhook = WebhookId::from_random([1; 16]);
    for kind in EventKind::ALL {
        let sample = sample_body(&webhook, &definition(), MessageKind::Event(kind), SLOT, NOW);
        let sample: Value = serde_json::from_str(&sample).expect("JSON");
        let suffix = payload::suffix(SLOT, Commitment::Confirmed, &real_data(kind));
        let real = payload::template(MessageKind::Event(kind), NOW, &webhook, suffix);
        let mut real: Value = serde_json::from_str(&real.with_sequence(1)).expect("JSON");
        assert_eq!(shape(&sample), shape(&real), "{kind}");
        assert_eq!(
            (&sample["sequence"], &real["sequence"]),
            (&0.into(), &1.into())
        );
        real["sequence"] = 0.into();
        assert_eq!(sample, real, "{kind}");
        let read: Message = serde_json::from_value(real).expect("the Rust client reads it");
        assert!(!matches!(read.content, Content::Other { .. }), "{kind}");
    }
}

#[test]
fn samples_of_operations_have_the_shape_of_real_ones() {
    let recipient = WebhookId::from_random([1; 16]);
    let troubled = TroubledWebhook {
        id: WebhookId::from_random([2; 16]),
        version: 2,
        disabled_reason: Some("answered 410".to_owned()),
        refused: Some("too many keys".to_owned()),
        matched_revision: Revision(3),
        filter_digest: String::new(),
        breaker: Breaker::Open,
        failing_since: Some(NOW),
    };
    let used_up = UsedUpQuota {
        webhook: recipient.clone(),
        quota: "webhooks",
        used: 1,
        limit: 1,
    };
    let kinds = OperationKind::ALL.into_iter().collect();
    let moment = (SLOT, NOW);
    let mut messages = operations::troubles(&recipient, &kinds, &troubled, moment);
    messages.push(operations::quota(&used_up, moment));
    // A gap is told by the session that finds it.
    assert_eq!(messages.len(), OperationKind::ALL.len() - 1);
    for message in messages {
        let kind = message.kind;
        let sample = sample_body(&recipient, &definition(), kind, SLOT, NOW);
        let sample: Value = serde_json::from_str(&sample).expect("JSON");
        let real: Value = serde_json::from_str(&message.body.with_sequence(0)).expect("JSON");
        assert_eq!(shape(&sample), shape(&real), "{}", kind.name());
        for body in [sample, real] {
            let read: Message = serde_json::from_value(body).expect("the Rust client reads it");
            match (kind, read.content) {
                (
                    MessageKind::Operation(OperationKind::EndpointDisabled),
                    Content::EndpointDisabled(_),
                )
                | (
                    MessageKind::Operation(OperationKind::EndpointFailing),
                    Content::EndpointFailing(_),
                )
                | (MessageKind::Operation(OperationKind::Quota), Content::Quota(_)) => {}
                (
                    MessageKind::Operation(OperationKind::FilterRefused),
                    Content::FilterRefused(refused),
                ) => {
                    assert!(refused.webhook.is_some(), "whose filter it is");
                }
                (kind, content) => panic!("{} is read as {content:?}", kind.name()),
            }
        }
    }
}

//! Sample payloads that a test sends: one body of each kind, of the shape of real ones (pure).
//!
//! They name the webhook's own addresses where it has some. The sequence number is 0, which no real message has.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sluice_store::{
    EventKind, MessageKind, OperationKind, Timestamp, WebhookDefinition, WebhookId,
};
use solana_pubkey::Pubkey;

/// A signature on the wire: 64 zero bytes in base58, which no transaction has.
const NO_SIGNATURE: &str = "1111111111111111111111111111111111111111111111111111111111111111";

/// The sequence number of a test.
const TEST_SEQUENCE: u64 = 0;

/// A base fee of one signature, lamports.
const FEE: u64 = 5_000;

/// The body of a test of this kind, as if it had happened at `now` in `slot`.
#[must_use]
pub fn body(
    webhook: &WebhookId,
    definition: &WebhookDefinition,
    kind: MessageKind,
    slot: u64,
    now: Timestamp,
) -> String {
    let commitment = definition.commitment;
    let data = match kind {
        MessageKind::Event(kind) => event(definition, kind),
        other => operation(other, (slot, now)),
    };
    let kind = kind.name();
    // None of these values needs escaping: they are made of letters, digits and `_-:.`.
    format!(
        r#"{{"type":"{kind}","timestamp":"{now}","webhookId":"{webhook}","sequence":{TEST_SEQUENCE},"slot":{slot},"commitment":"{commitment}","data":{data}}}"#
    )
}

/// Of a webhook that no owner has.
fn operation(kind: MessageKind, (slot, now): (u64, Timestamp)) -> Value {
    let webhook = WebhookId::from_random([0; 16]).to_string();
    match kind {
        MessageKind::Operation(OperationKind::EndpointDisabled) => {
            json!({ "webhook": webhook, "reason": "a test" })
        }
        MessageKind::Operation(OperationKind::EndpointFailing) => {
            json!({ "webhook": webhook, "since": now.to_string() })
        }
        MessageKind::Operation(OperationKind::Quota) => {
            json!({ "quota": "webhooks", "used": 1, "limit": 1 })
        }
        MessageKind::Gap => json!({
            "firstSlot": slot,
            "lastSlot": slot,
            "reason": "a test",
            "kinds": [EventKind::AccountChange.name()],
            "webhook": webhook,
        }),
        MessageKind::Operation(OperationKind::FilterRefused) => {
            json!({ "webhook": webhook, "reason": "a test", "digest": "" })
        }
        _ => Value::Null,
    }
}

fn event(definition: &WebhookDefinition, kind: EventKind) -> Value {
    let filters = &definition.filters;
    let first = |keys: &[Pubkey]| keys.first().copied();
    let program = first(&filters.programs).unwrap_or(swap_guard_interface::PROGRAM_ID);
    let account = first(&filters.accounts).unwrap_or(program).to_string();
    let program = program.to_string();
    match kind {
        EventKind::AccountChange => json!({
            "pubkey": account,
            "owner": program,
            "lamports": 1,
            "data": STANDARD.encode([]),
            "dataLength": 0,
            "executable": false,
            "writtenBy": NO_SIGNATURE,
        }),
        EventKind::Transaction => json!({
            "signature": NO_SIGNATURE,
            "index": 0,
            "error": null,
            "fee": FEE,
            "computeUnits": 0,
            "accountKeys": [account, program],
            "programs": [program],
            "instructions": [],
            "innerInstructions": [],
            "preBalances": [],
            "postBalances": [],
            "preTokenBalances": [],
            "postTokenBalances": [],
            "logs": [],
        }),
        EventKind::ProgramEvent => json!({
            "programId": program,
            "signature": NO_SIGNATURE,
            "index": 0,
            "discriminator": "0000000000000000",
            "data": STANDARD.encode([0; 8]),
            "name": null,
            "fields": null,
        }),
    }
}

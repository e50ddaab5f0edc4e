//! Payloads: the JSON bodies that endpoints read, by type of message (pure).
//!
//! Every message is `{"type", "timestamp", "webhookId", "sequence", "slot", "commitment", "data"}`.
//! `type` is the kind of message; `timestamp` the time of the block (ISO 8601, UTC); `sequence` counts a
//! webhook's messages from 1 without holes; `commitment` is the webhook's. `data` depends on the type:
//!
//! - `accountChange`: `pubkey`, `owner`, `lamports`, `data` (base64), `dataLength`, `executable`,
//!   `writtenBy` (signature of the writing transaction, or null). With `origin` `snapshot`, which no change has, it is
//!   how an account that the webhook watches by address is after a gap, as of `slot`; one that does not exist has no
//!   lamports and is owned by the system program. `lastOwner`, which no other change has, is the program that the webhook
//!   watches and that owned the account before: with this change it was closed or came to another program. With `origin`
//!   `transaction`, which has `lastOwner` always, that follows from the transaction `writtenBy`, because the stream shows no write
//!   of it: the account is as a node has it of `stateSlot`, which is this slot or a later one.
//! - `transaction`: `signature`, `index` (position in the block), `error` (text, or null), `fee` (lamports),
//!   `computeUnits` (or null), `accountKeys` (loaded ones at the end), `programs` (invoked at any depth), and in the shapes of
//!   `getTransaction` with encoding `json`: `instructions`, `innerInstructions`, `preBalances`, `postBalances`,
//!   `preTokenBalances`, `postTokenBalances`, whose indexes count in `accountKeys`; `logs` (or null when the validator kept none), and `logsTruncated`: true, only where the validator cut the logs. Events that the programs
//!   logged after the cut are missing then; those that they emitted by instructions are all there.
//! - `programEvent`: `programId`, `signature`, `index` (position among the events of the transaction),
//!   `discriminator` (hex of the first eight bytes, or null when there are fewer), `data` (base64, with the
//!   discriminator), `name` and `fields` (null for events whose IDL is not registered). One of the exchange's has `mints`, too:
//!   `inputMint` and `outputMint` of a swap, `token0Mint`, `token1Mint` and `lpMint` of a deposit or withdrawal, out of the
//!   accounts of the instruction that emitted it, where that is found in the transaction.
//! - `reverted`: `messageId` and `sequence` of the message that is retracted, its `type`, and `reason`:
//!   `dead`, `abandoned` or `replaced`. Sent at commitment `processed`; at `confirmed` only when the validator declares a
//!   block dead that it had reported as confirmed, and has another one (`replaced`); never at `finalized`.
//! - `gap`: `firstSlot` and `lastSlot`, both included, of which events may be missing, `reason`, and `kinds`: the kinds of
//!   events that the webhook wants and that may be missing. Those are all of its kinds where nothing of the slots could be
//!   read: events emitted at `processed` in them are neither confirmed nor retracted. It is `accountChange` alone where
//!   the slots were read by RPC; the accounts that the webhook watches follow as they are now, but for those of the programs
//!   in `statesOmitted`, which have too many.
//! - `heartbeat`: `lastSlot` (the last one read at the webhook's commitment, or null), `lastSequence`, and
//!   `filter`: `digest`, `accounts`, `programs` and `tokenOwners` of what is watched.
//! - `filterRefused`: `reason`, the words with which the stream's server refuses the webhook's filter, and `digest` of the
//!   filter. No event is matched for the webhook until it is edited.
//! - `resumed`: `firstSlot` and `lastSlot`, both included, which were not watched, because the webhook was switched off; what
//!   is told of them already stays told, and the webhook can ask for the rest of them by a backfill.
//!
//! - `endpoint.disabled`: `webhook`, another one of the same owner's, which the service switched off, and `reason`;
//!   `endpoint.failing`: `webhook` and `since`, when the first of its failed attempts in a row ended, or null; `filter.refused`: what
//!   `filterRefused` has, and the `webhook` whose filter it is; `quota`: `quota` (`webhooks`, `addresses`, `storedBytes`,
//!   `messagesPerSecond` or `deliverySlots`), what is `used` of it and its `limit`. A `gap` of another webhook of the same owner's
//!   has a member `webhook`, too. They go to webhooks whose owner asks for them.
//!
//! Of the last kinds from `heartbeat` on, `timestamp` is when they were written, and `slot` the last one they name, or the last one read.
//!
//! Integers are JSON integers of up to 64 bits; readers whose numbers are floating point lose precision
//! above 2^53 and should parse them as big integers.

mod execution;

use std::{fmt, io::Write, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::{Value, json};
use sluice_geyser::{AccountUpdate, TransactionUpdate};
use sluice_store::{BodyTemplate, Commitment, EventKind, MessageKind, SlotMessage, WebhookId};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use super::{
    exchange_mints::Mints,
    idl::Decoder,
    lost::Lost,
    program_events::{ProgramEvent, logs_truncated},
    subscriber::Subscriber,
};
use crate::slots::{Gap, RetractReason, Taken};

/// Bytes by which the events of an Anchor program differ.
const DISCRIMINATOR_BYTES: usize = 8;

/// Room for the suffix of an account of a few hundred bytes: most need not grow.
const USUAL_BYTES: usize = 2048;

/// The part of a body that is the same for every webhook that the same event matches.
#[must_use]
pub fn suffix(slot: u64, commitment: Commitment, data: &impl Serialize) -> Arc<str> {
    let mut text = Vec::with_capacity(USUAL_BYTES);
    let written = write!(
        text,
        r#","slot":{slot},"commitment":"{commitment}","data":"#
    );
    written.expect("a vector takes everything");
    // Hardly anything in it needs escaping, and this library does not look for that byte by byte.
    sonic_rs::to_writer(&mut text, data).expect("keys are texts, and nothing else can fail");
    text.push(b'}');
    String::from_utf8(text).expect("JSON is UTF-8").into()
}

/// A body without its sequence number. `timestamp` is a [`sluice_store::Timestamp`], or the text of one.
#[must_use]
pub fn template(
    kind: MessageKind,
    timestamp: impl fmt::Display,
    webhook: &WebhookId,
    suffix: Arc<str>,
) -> BodyTemplate {
    // None of these values needs escaping: they are made of letters, digits and `_-:.`.
    let kind = kind.name();
    let prefix = format!(
        r#"{{"type":"{kind}","timestamp":"{timestamp}","webhookId":"{webhook}","sequence":"#
    );
    BodyTemplate::new(prefix, suffix)
}

/// The `data` of an `accountChange`; `last_owner` is the program that it left, for a webhook that watches that one.
#[must_use]
pub fn account_change(
    account: &AccountUpdate,
    last_owner: Option<&Pubkey>,
) -> impl Serialize + use<> {
    AccountChange {
        last_owner: last_owner.map(ToString::to_string),
        ..changed(account)
    }
}

fn changed(account: &AccountUpdate) -> AccountChange {
    AccountChange {
        pubkey: account.pubkey.to_string(),
        owner: account.owner.to_string(),
        lamports: account.lamports,
        data: STANDARD.encode(&account.data),
        data_length: account.data.len(),
        executable: account.executable,
        written_by: account.txn_signature.map(|signature| signature.to_string()),
        origin: None,
        last_owner: None,
    }
}

/// The `data` of an `accountChange` by which an account was taken from a program without a write that shows it.
#[must_use]
pub fn account_taken(taken: &Taken) -> impl Serialize + use<> {
    let Taken { taking, state } = taken;
    AccountTaken {
        change: AccountChange {
            written_by: Some(taking.by.to_string()),
            origin: Some("transaction"),
            last_owner: Some(taking.last_owner.to_string()),
            ..changed(state)
        },
        state_slot: state.slot,
    }
}

/// The `data` of an `accountChange` that shows how an account is, not that it was written. `program` is the one that it was known
/// to belong to.
#[must_use]
pub fn account_state(account: &AccountUpdate, program: Option<Pubkey>) -> impl Serialize + use<> {
    let last_owner = program.filter(|program| *program != account.owner);
    AccountChange {
        origin: Some("snapshot"),
        last_owner: last_owner.map(|owner| owner.to_string()),
        ..changed(account)
    }
}

/// Written without a detour over a map, because there are many.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccountChange {
    pubkey: String,
    owner: String,
    lamports: u64,
    data: String,
    data_length: usize,
    executable: bool,
    written_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_owner: Option<String>,
}

/// An account that was taken from a program.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccountTaken {
    #[serde(flatten)]
    change: AccountChange,
    state_slot: u64,
}

/// The `data` of a `transaction`; `programs` are those it invoked.
#[must_use]
pub fn transaction(transaction: &TransactionUpdate, programs: &[Pubkey]) -> Value {
    let logs = (!transaction.logs_missing).then_some(&transaction.log_messages);
    let mut data = json!({
        "signature": transaction.signature.to_string(),
        "index": transaction.index,
        "error": transaction.error,
        "fee": transaction.fee,
        "computeUnits": transaction.compute_units,
        "accountKeys": texts(&transaction.account_keys),
        "programs": texts(programs),
        "instructions": execution::instructions(transaction),
        "innerInstructions": execution::inner_instructions(transaction),
        "preBalances": transaction.pre_balances,
        "postBalances": transaction.post_balances,
        "preTokenBalances": execution::token_balances(&transaction.pre_token_balances),
        "postTokenBalances": execution::token_balances(&transaction.post_token_balances),
        "logs": logs,
    });
    if logs_truncated(transaction) {
        data["logsTruncated"] = true.into();
    }
    data
}

/// The `data` of a `programEvent`, the `index`-th of the transaction with this signature; with `mints` where it is the exchange's
/// and they are known.
#[must_use]
pub fn program_event(
    event: &ProgramEvent,
    (signature, index): (&Signature, usize),
    decoder: Decoder<'_>,
    mints: Option<Mints>,
) -> Value {
    let (name, fields) = decoder.decode(&event.program, &event.data).unzip();
    let mut data = json!({
        "programId": event.program.to_string(),
        "signature": signature.to_string(),
        "index": index,
        "discriminator": event.data.get(..DISCRIMINATOR_BYTES).map(hex::encode),
        "data": STANDARD.encode(&event.data),
        "name": name,
        "fields": fields,
    });
    if let Some(mints) = mints {
        let named = mints.into_iter();
        let named = named.map(|(name, mint)| (name.to_owned(), mint.to_string().into()));
        data["mints"] = Value::Object(named.collect());
    }
    data
}

/// The `data` of a `reverted`.
#[must_use]
pub fn reverted(first: &SlotMessage, reason: RetractReason) -> Value {
    json!({
        "messageId": first.id.as_str(),
        "sequence": first.sequence,
        "type": first.kind.name(),
        "reason": reason.name(),
    })
}

/// The `data` of a `gap` for a webhook; `None` where nothing of what it wants is `lost`.
#[must_use]
pub fn gap(gap: Gap, lost: &Lost, webhook: &Subscriber) -> Option<Value> {
    let kinds = lost.kinds_of(webhook)?;
    let reason = if lost.kinds().transaction {
        "these slots were not read completely, and the stream can no longer replay them"
    } else {
        "these slots were read by RPC, which has no changes of accounts, because the stream can no longer replay them"
    };
    let mut data = json!({
        "firstSlot": gap.first,
        "lastSlot": gap.last,
        "reason": reason,
        "kinds": kinds.iter().map(EventKind::name).collect::<Vec<_>>(),
    });
    let states_omitted = lost.states_omitted_of(webhook);
    if !states_omitted.is_empty() {
        data["statesOmitted"] = texts(states_omitted).into();
    }
    Some(data)
}

/// The `data` of a `resumed`.
#[must_use]
pub fn resumed(pause: Gap) -> Value {
    json!({
        "firstSlot": pause.first,
        "lastSlot": pause.last,
    })
}

/// The `data` of a `heartbeat`.
#[must_use]
pub fn heartbeat(webhook: &Subscriber, last_slot: Option<u64>, last_sequence: u64) -> Value {
    json!({
        "lastSlot": last_slot,
        "lastSequence": last_sequence,
        "filter": {
            "digest": webhook.filter_digest,
            "accounts": webhook.accounts,
            "programs": webhook.programs,
            "tokenOwners": webhook.token_owners,
        },
    })
}

/// The `data` of a `filterRefused`.
#[must_use]
pub fn filter_refused(webhook: &Subscriber, reason: &str) -> Value {
    json!({
        "reason": reason,
        "digest": webhook.filter_digest,
    })
}

fn texts(keys: &[Pubkey]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use sluice_geyser::TokenBalance;
    use swap_guard_interface::{GUARDED_SWAP_DISCRIMINATOR, PROGRAM_ID};

    use super::*;
    use crate::{
        events::{idl::Idls, program_events::EventPath},
        slots::slot_events::fixtures::transaction as transaction_of,
    };

    fn event(program: Pubkey, data: Vec<u8>) -> Value {
        let event = ProgramEvent {
            program,
            path: EventPath::Log { ordinal: 0 },
            data,
            invocation: None,
        };
        let idls = Idls::built_in().expect("understood");
        let place = (&Signature::from([1; 64]), 3);
        program_event(&event, place, idls.shared(), None)
    }

    #[test]
    fn the_guards_event_is_decoded() {
        let mut data = GUARDED_SWAP_DISCRIMINATOR.to_vec();
        data.extend((1..=4u8).flat_map(|key| [key; 32]));
        data.extend([u64::MAX, 6, 7, 8].into_iter().flat_map(u64::to_le_bytes));
        let body = event(PROGRAM_ID, data.clone());
        assert_eq!(body["name"], "GuardedSwap");
        assert_eq!(
            body["discriminator"],
            hex::encode(GUARDED_SWAP_DISCRIMINATOR)
        );
        assert_eq!(
            body["fields"]["inputMint"],
            Pubkey::new_from_array([3; 32]).to_string()
        );
        assert_eq!(body["fields"]["amountIn"], u64::MAX);
        assert_eq!(body["fields"]["received"], 7);
        assert_eq!(body["index"], 3);

        let foreign = event(Pubkey::new_from_array([9; 32]), data);
        assert_eq!(
            (&foreign["name"], &foreign["fields"]),
            (&Value::Null, &Value::Null)
        );
    }

    #[test]
    fn a_transaction_says_that_its_logs_were_cut_only_where_they_were() {
        let mut one = transaction_of(7, 1);
        let whole = transaction(&one, &[]);
        assert_eq!(whole.get("logsTruncated"), None);
        one.log_messages.push("Log truncated".to_owned());
        let mut cut = transaction(&one, &[]);
        assert_eq!(cut["logs"], json!(["Log truncated"]));
        // Nothing else about it differs.
        cut["logs"] = json!([]);
        let fields = cut.as_object_mut().expect("an object");
        assert_eq!(fields.remove("logsTruncated"), Some(Value::Bool(true)));
        assert_eq!(cut, whole);
    }

    #[test]
    fn balances_before_and_after_a_transaction_are_told_apart() {
        let token = |account_index, amount: u64| TokenBalance {
            account_index,
            mint: Pubkey::new_from_array([3; 32]),
            owner: None,
            program: None,
            amount,
            decimals: 0,
            shown_amount: amount.to_string(),
        };
        let body = transaction(
            &TransactionUpdate {
                pre_balances: vec![11, 12],
                post_balances: vec![21, 22],
                pre_token_balances: vec![token(1, 31)],
                post_token_balances: vec![token(1, 41), token(2, 42)],
                ..transaction_of(7, 1)
            },
            &[],
        );
        assert_eq!(body["preBalances"], json!([11, 12]));
        assert_eq!(body["postBalances"], json!([21, 22]));
        let tokens = |member: &str| {
            let balances = body[member].as_array().expect("a list").iter();
            let written = balances.map(|balance| {
                let amount = balance["uiTokenAmount"]["amount"].clone();
                (balance["accountIndex"].clone(), amount)
            });
            written.collect::<Vec<_>>()
        };
        assert_eq!(tokens("preTokenBalances"), [(json!(1), json!("31"))]);
        let after = [(json!(1), json!("41")), (json!(2), json!("42"))];
        assert_eq!(tokens("postTokenBalances"), after);
    }

    #[test]
    fn an_event_too_short_for_a_discriminator_keeps_its_bytes() {
        let body = event(PROGRAM_ID, vec![1, 2]);
        assert_eq!(
            (&body["discriminator"], &body["data"]),
            (&Value::Null, &json!("AQI="))
        );
    }
}

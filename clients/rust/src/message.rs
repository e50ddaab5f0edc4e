//! Messages of webhooks: the bodies that endpoints read, by type.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wire::{Commitment, EventKind};

/// What happened, and where in the chain.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Envelope")]
#[non_exhaustive]
pub struct Message {
    /// The same at every retry and replay. In a message that came alone it is the delivery's.
    pub id: Option<String>,
    /// Time of the block, ISO 8601, UTC.
    pub timestamp: String,
    /// The webhook.
    pub webhook_id: String,
    /// Counts the messages of a webhook from 1, without a gap.
    pub sequence: u64,
    /// The slot that it is about.
    pub slot: u64,
    /// At which the webhook gets events.
    pub commitment: Commitment,
    /// What happened.
    pub content: Content,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// An account was written.
    AccountChange(AccountChange),
    /// A transaction was executed.
    Transaction(Box<ExecutedTransaction>),
    /// A program emitted an event.
    ProgramEvent(ProgramEvent),
    /// A message that was emitted before is retracted: its slot left the chain.
    Reverted(Reverted),
    /// Slots of which events may be missing.
    Gap(Gap),
    /// Nothing was missed up to a slot.
    Heartbeat(Heartbeat),
    /// The stream's server refuses the webhook's filter, or that of another one of the same owner's.
    FilterRefused(FilterRefused),
    /// The webhook was switched off and watches again.
    Resumed(Resumed),
    /// Another webhook of the same owner's was switched off by the service.
    EndpointDisabled(EndpointDisabled),
    /// The endpoint of another webhook of the same owner's fails.
    EndpointFailing(EndpointFailing),
    /// Nothing is left of a quota.
    Quota(QuotaUsedUp),
    /// A thin delivery, whose data is left out: `Client::get_message` answers the message whole.
    Thin {
        /// The name of its type.
        kind: String,
        /// How long the data is.
        data_bytes: u64,
    },
    /// A type of a later version of the service: ignore what you do not know.
    Other {
        /// Its name.
        kind: String,
        /// What it holds.
        data: Value,
    },
}

/// An account was written. `None` are `owner`, `data`, `data_length` and `executable` only with the origin
/// `transaction`, where what became of the account is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountChange {
    /// Its address.
    pub pubkey: String,
    /// The program that owns it.
    pub owner: Option<String>,
    /// What it holds.
    pub lamports: u64,
    /// Base64.
    pub data: Option<String>,
    /// Bytes.
    pub data_length: Option<u64>,
    /// Whether it is a program.
    pub executable: Option<bool>,
    /// Signature of the writing transaction.
    pub written_by: Option<String>,
    /// `snapshot` where it shows how an account is after a gap, not that it was written; `transaction` where that it left
    /// `last_owner` follows from the transaction `written_by` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// With the origin `transaction`: the slot of which the account is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_slot: Option<u64>,
    /// The program that is watched and that owned the account before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_owner: Option<String>,
}

/// A transaction was executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutedTransaction {
    /// Its first signature.
    pub signature: String,
    /// Position in the block.
    pub index: u64,
    /// Why it failed.
    pub error: Option<String>,
    /// Lamports.
    pub fee: u64,
    /// What it used.
    pub compute_units: Option<u64>,
    /// All accounts, those of lookup tables at the end.
    pub account_keys: Vec<String>,
    /// Invoked at any depth.
    pub programs: Vec<String>,
    /// What its programs logged, where the validator kept it.
    pub logs: Option<Vec<String>>,
    /// Whether the validator cut the logs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub logs_truncated: bool,
    /// Instructions and balances in the shapes of `getTransaction` with encoding `json`.
    #[serde(flatten)]
    pub execution: BTreeMap<String, Value>,
}

/// A program emitted an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgramEvent {
    /// The program.
    pub program_id: String,
    /// The transaction.
    pub signature: String,
    /// Position among the events of the transaction.
    pub index: u64,
    /// Hexadecimal of the first eight bytes.
    pub discriminator: Option<String>,
    /// Base64, with the discriminator.
    pub data: String,
    /// Absent, as are the fields, where no IDL is registered.
    pub name: Option<String>,
    /// By their names.
    pub fields: Option<BTreeMap<String, Value>>,
    /// Of an event of the exchange: the mints among the accounts of the instruction that emitted it, by the names `inputMint` and
    /// `outputMint`, or `token0Mint`, `token1Mint` and `lpMint`. Absent where that was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mints: Option<BTreeMap<String, String>>,
}

/// A message that was emitted before is retracted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reverted {
    /// The id of the message that is retracted.
    pub message_id: String,
    /// Its number.
    pub sequence: u64,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `dead`, `abandoned` or `replaced`.
    pub reason: String,
}

/// Slots of which events may be missing, both included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// The first of them.
    pub first_slot: u64,
    /// The last of them.
    pub last_slot: u64,
    /// Why they were not read.
    pub reason: String,
    /// The kinds of events that may be missing.
    pub kinds: Vec<EventKind>,
    /// Programs that the webhook watches, of which no account follows as it is now, since they have too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states_omitted: Vec<String>,
    /// The webhook for which they are missing, where it is another one of the same owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
}

/// Nothing was missed up to a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// The last one that was read.
    pub last_slot: Option<u64>,
    /// The newest message's number.
    pub last_sequence: u64,
    /// What is watched.
    pub filter: WatchedFilter,
}

/// What a webhook watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchedFilter {
    /// Of the addresses.
    pub digest: String,
    /// How many.
    pub accounts: u64,
    /// How many.
    pub programs: u64,
    /// How many.
    #[serde(default)]
    pub token_owners: u64,
}

/// The stream's server refuses the filter: no event is matched for its webhook until it is edited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterRefused {
    /// The server's words.
    pub reason: String,
    /// Of the filter.
    pub digest: String,
    /// The webhook whose filter it is, where it is another one of the same owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
}

/// Slots that were not watched, because the webhook was switched off, both included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resumed {
    /// The first one.
    pub first_slot: u64,
    /// The last one.
    pub last_slot: u64,
}

/// Another webhook of the same owner's was switched off by the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointDisabled {
    /// That webhook.
    pub webhook: String,
    /// Why it was.
    pub reason: String,
}

/// The endpoint of another webhook of the same owner's fails, and is attempted seldom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointFailing {
    /// That webhook.
    pub webhook: String,
    /// The first of the failed attempts in a row, ISO 8601, UTC, where that is known.
    pub since: Option<String>,
}

/// Nothing is left of a quota; told once a day while that is so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaUsedUp {
    /// `webhooks`, `addresses`, `storedBytes`, `messagesPerSecond` or `deliverySlots`; a later version of the service may have others.
    pub quota: String,
    /// What is used of it; of delivery slots perhaps less than is allowed, where one webhook waits because of what it must leave to the
    /// others.
    pub used: u64,
    /// What is allowed.
    pub limit: u64,
}

/// A message as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    timestamp: String,
    webhook_id: String,
    sequence: u64,
    slot: u64,
    commitment: Commitment,
    #[serde(default)]
    data: Value,
    data_bytes: Option<u64>,
}

impl TryFrom<Envelope> for Message {
    type Error = serde_json::Error;

    fn try_from(envelope: Envelope) -> Result<Self, Self::Error> {
        let Envelope { kind, data, .. } = envelope;
        let content = match (kind.as_str(), envelope.data_bytes) {
            (_, Some(data_bytes)) if data.is_null() => Content::Thin { kind, data_bytes },
            ("accountChange", _) => Content::AccountChange(serde_json::from_value(data)?),
            ("transaction", _) => Content::Transaction(serde_json::from_value(data)?),
            ("programEvent", _) => Content::ProgramEvent(serde_json::from_value(data)?),
            ("reverted", _) => Content::Reverted(serde_json::from_value(data)?),
            ("gap", _) => Content::Gap(serde_json::from_value(data)?),
            ("heartbeat", _) => Content::Heartbeat(serde_json::from_value(data)?),
            ("filterRefused" | "filter.refused", _) => {
                Content::FilterRefused(serde_json::from_value(data)?)
            }
            ("resumed", _) => Content::Resumed(serde_json::from_value(data)?),
            ("endpoint.disabled", _) => Content::EndpointDisabled(serde_json::from_value(data)?),
            ("endpoint.failing", _) => Content::EndpointFailing(serde_json::from_value(data)?),
            ("quota", _) => Content::Quota(serde_json::from_value(data)?),
            _ => Content::Other { kind, data },
        };
        Ok(Self {
            id: envelope.id,
            timestamp: envelope.timestamp,
            webhook_id: envelope.webhook_id,
            sequence: envelope.sequence,
            slot: envelope.slot,
            commitment: envelope.commitment,
            content,
        })
    }
}

//! Schemas of webhook fields in the API's description, with the names and limits that the checks use.

use serde_json::Value;
use sluice_config::WebhooksConfig;
use sluice_store::{
    Commitment, DeliveryOrder, OperationKind, Payload, SignatureVersion, TransactionOutcome,
    WebhookDefinition,
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        Ref, RefOr, Schema,
        schema::{
            AdditionalProperties, Array, ArrayBuilder, Object, ObjectBuilder, SchemaFormat,
            SchemaType, Type,
        },
    },
};

use super::limits::{
    MAX_DESCRIPTION_CHARS, MAX_HEADERS, MAX_HEARTBEAT_SECS, MAX_OVERLAP_SECS, MAX_URL_BYTES,
    MIN_HEARTBEAT_SECS,
};
use crate::extract::Address;

/// A kind of event.
pub(super) struct EventKind;

impl PartialSchema for EventKind {
    fn schema() -> RefOr<Schema> {
        let names = sluice_store::EventKind::ALL.map(sluice_store::EventKind::name);
        one_of(&names, "A kind of event.").into()
    }
}

impl ToSchema for EventKind {}

/// Kind of a message.
pub(super) struct MessageKind;

impl PartialSchema for MessageKind {
    fn schema() -> RefOr<Schema> {
        use sluice_store::MessageKind as Kind;
        let events = sluice_store::EventKind::ALL.map(Kind::Event);
        let others = [
            Kind::Reverted,
            Kind::Gap,
            Kind::Heartbeat,
            Kind::FilterRefused,
            Kind::Resumed,
        ];
        let operations = OperationKind::ALL.map(OperationKind::message_kind);
        let operations = operations
            .into_iter()
            .filter(|kind| matches!(kind, Kind::Operation(_)));
        let kinds = events.into_iter().chain(others).chain(operations);
        let names: Vec<&'static str> = kinds.map(Kind::name).collect();
        one_of(&names, "What the message is about.").into()
    }
}

impl ToSchema for MessageKind {}

/// What an operational message is about.
pub(super) struct OperationKindName;

impl PartialSchema for OperationKindName {
    fn schema() -> RefOr<Schema> {
        let names = OperationKind::ALL.map(OperationKind::name);
        one_of(&names, "What becomes of a webhook.").into()
    }
}

impl ToSchema for OperationKindName {
    fn name() -> std::borrow::Cow<'static, str> {
        "OperationKind".into()
    }
}

/// The number of a message among those of its webhook: any of 64 bits, where the derived description
/// stops at 63.
pub(super) struct SequenceNumber;

impl PartialSchema for SequenceNumber {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0_u64))
            .maximum(Some(u64::MAX))
            .description(Some("The number of a message among those of its webhook."))
            .into()
    }
}

impl ToSchema for SequenceNumber {}

/// How the delivery of a message stands.
pub(super) struct DeliveryState;

impl PartialSchema for DeliveryState {
    fn schema() -> RefOr<Schema> {
        let names = sluice_store::DeliveryState::ALL.map(sluice_store::DeliveryState::name);
        one_of(&names, "How the delivery of a message stands.").into()
    }
}

impl ToSchema for DeliveryState {}

pub(super) fn commitment() -> Object {
    let names = Commitment::ALL.map(Commitment::name);
    one_of(&names, "At which commitment events are sent.")
}

pub(super) fn breaker() -> Object {
    let names = sluice_store::Breaker::ALL.map(sluice_store::Breaker::name);
    one_of(&names, "State of the circuit breaker.")
}

pub(super) fn backfill_state() -> Object {
    let names = sluice_store::BackfillState::ALL.map(sluice_store::BackfillState::name);
    one_of(&names, "How far it is.")
}

pub(super) fn order() -> Object {
    let names = DeliveryOrder::ALL.map(DeliveryOrder::name);
    one_of(&names, "Whether messages wait for the ones before them.")
}

/// Allows null, which stands for the default.
fn or_null(mut schema: Object, default: &str) -> Object {
    if let SchemaType::Type(one) = schema.schema_type {
        schema.schema_type = SchemaType::from_iter([one, Type::Null]);
    }
    if let Some(values) = &mut schema.enum_values {
        values.push(Value::Null);
    }
    let about = schema.description.unwrap_or_default();
    schema.description = Some(format!("{about} Null is the default: {default}."));
    schema
}

pub(super) fn optional_commitment() -> Object {
    or_null(commitment(), WebhookDefinition::DEFAULT_COMMITMENT.name())
}

pub(super) fn optional_order() -> Object {
    or_null(order(), DeliveryOrder::default().name())
}

pub(super) fn optional_active() -> Object {
    or_null(plain(Type::Boolean, "Whether events are sent."), "true")
}

pub(super) fn optional_gzip() -> Object {
    or_null(
        plain(Type::Boolean, "Whether bodies are compressed."),
        "false",
    )
}

pub(super) fn url() -> Object {
    let mut url = plain(
        Type::String,
        "Callback URL, https. A temporary webhook needs none.",
    );
    url.format = Some(SchemaFormat::Custom("uri".to_owned()));
    url.max_length = Some(MAX_URL_BYTES);
    url
}

pub(super) fn events() -> Array {
    ArrayBuilder::new()
        .items(Ref::from_schema_name(EventKind::name()))
        .unique_items(true)
        .description(Some(
            "Kinds of event, each at most once; none where the webhook is told of operations alone.",
        ))
        .build()
}

pub(super) fn operations() -> Array {
    ArrayBuilder::new()
        .items(Ref::from_schema_name(OperationKindName::name()))
        .unique_items(true)
        .description(Some(
            "Of what becomes of the owner's other webhooks it is told, each at most once.",
        ))
        .build()
}

pub(super) fn optional_operations() -> Array {
    let mut names = operations();
    names.schema_type = SchemaType::from_iter([Type::Array, Type::Null]);
    names.description = names
        .description
        .map(|about| format!("{about} Null is the default: none."));
    names
}

pub(super) fn optional_description() -> Object {
    let mut text = plain(Type::String, "A note of the owner's.");
    text.max_length = Some(MAX_DESCRIPTION_CHARS);
    or_null(text, "none")
}

pub(super) fn optional_headers() -> Object {
    let mut value = plain(Type::String, "Visible ASCII characters and spaces.");
    value.pattern = Some("^[\\t\\x20-\\x7e]*$".to_owned());
    let mut headers = plain(
        Type::Object,
        "Headers that deliveries carry beside the service's own.",
    );
    headers.additional_properties = Some(Box::new(AdditionalProperties::RefOr(value.into())));
    headers.max_properties = Some(MAX_HEADERS);
    or_null(headers, "none")
}

pub(super) fn optional_heartbeat() -> Object {
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(MIN_HEARTBEAT_SECS))
        .maximum(Some(MAX_HEARTBEAT_SECS))
        .description(Some("Seconds between two signs of life."));
    or_null(seconds.build(), "none")
}

pub(super) fn optional_overlap() -> Object {
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0_u64))
        .maximum(Some(MAX_OVERLAP_SECS))
        .description(Some("How long the secret before signs as well, seconds."));
    or_null(seconds.build(), "the configured time")
}

pub(super) fn report_duration() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0_u64))
        .maximum(Some(u64::from(u32::MAX)))
        .description(Some("How long the receiver took, milliseconds."))
        .build()
}

pub(super) fn outcome() -> Object {
    let names = TransactionOutcome::ALL.map(TransactionOutcome::name);
    one_of(
        &names,
        "Whether transactions must have succeeded or failed.",
    )
}

pub(super) fn optional_outcome() -> Object {
    or_null(outcome(), TransactionOutcome::default().name())
}

pub(super) fn optional_encoding() -> Object {
    or_null(
        one_of(&["base58", "base64"], "How the bytes are written."),
        "base58",
    )
}

pub(super) fn payload() -> Object {
    let names = Payload::ALL.map(Payload::name);
    one_of(
        &names,
        "Whether deliveries carry the data of their messages.",
    )
}

pub(super) fn optional_payload() -> Object {
    or_null(payload(), Payload::default().name())
}

pub(super) fn signatures() -> Array {
    versions(Type::Array.into())
}

pub(super) fn optional_signatures() -> Array {
    versions(SchemaType::from_iter([Type::Array, Type::Null]))
}

fn versions(kind: SchemaType) -> Array {
    let names = SignatureVersion::ALL.map(SignatureVersion::name);
    ArrayBuilder::new()
        .schema_type(kind)
        .items(one_of(
            &names,
            "A version of the signatures of Standard Webhooks.",
        ))
        .min_items(Some(1))
        .description(Some("What deliveries are signed by."))
        .build()
}

/// A field that may hold anything.
pub(super) fn ignored() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .description(Some("Written by the service; what is sent is not read."))
        .build()
}

pub(super) fn accounts() -> Array {
    addresses(WebhooksConfig::default().max_accounts, Type::Array.into())
}

pub(super) fn programs() -> Array {
    addresses(WebhooksConfig::default().max_programs, Type::Array.into())
}

pub(super) fn optional_accounts() -> Array {
    let kind = SchemaType::from_iter([Type::Array, Type::Null]);
    addresses(WebhooksConfig::default().max_accounts, kind)
}

pub(super) fn optional_programs() -> Array {
    let kind = SchemaType::from_iter([Type::Array, Type::Null]);
    addresses(WebhooksConfig::default().max_programs, kind)
}

pub(super) fn optional_token_owners() -> Array {
    optional_accounts()
}

fn addresses(most: usize, kind: SchemaType) -> Array {
    ArrayBuilder::new()
        .schema_type(kind)
        .items(Ref::from_schema_name(Address::name()))
        .max_items(Some(most))
        .description(Some(format!(
            "At most {most} unless configured otherwise; repeated ones count once."
        )))
        .build()
}

pub(super) fn header_pairs() -> Array {
    let pair = ArrayBuilder::new()
        .items(plain(Type::String, "Name, then value."))
        .min_items(Some(2))
        .max_items(Some(2));
    ArrayBuilder::new()
        .items(pair)
        .description(Some(
            "Name and value, in the order in which they were sent.",
        ))
        .build()
}

fn plain(kind: Type, description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(kind)
        .description(Some(description))
        .build()
}

fn one_of(names: &[&'static str], description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names.iter().copied()))
        .description(Some(description))
        .build()
}

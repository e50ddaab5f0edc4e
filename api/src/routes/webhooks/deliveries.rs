//! `GET /api/webhooks/{id}/deliveries`: lists messages, newest first, with every delivery attempt.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, RawQuery, State as StateOf},
};
use serde::Serialize;
use sluice_store::{Attempt, DeliveryLog, DeliveryQuery, DeliveryState};
use utoipa::ToSchema;

use super::{
    paging::{self, PageSize},
    parts::{Refusals, WebhookPath},
    problem::{found, parse_id},
    schema,
    state::State,
};
use crate::{auth::Caller, error::ApiError, extract::QueryMap};

/// Each of a message's attempts may hold an answer of 64 KiB.
const PAGE: PageSize = PageSize {
    default: 20,
    most: 50,
};

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryPage)]
pub(super) struct Page {
    /// The newest first.
    deliveries: Vec<DeliveryView>,
    /// Opaque; null on the last page.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// A message, and how its delivery stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
struct DeliveryView {
    /// The `webhook-id` with which it is delivered.
    id: String,
    sequence: u64,
    #[serde(rename = "type")]
    #[schema(value_type = schema::MessageKind)]
    kind: &'static str,
    slot: u64,
    #[schema(value_type = schema::DeliveryState)]
    state: &'static str,
    /// ISO 8601, UTC; null when it is finished, and while it waits for an earlier message.
    #[schema(required, format = DateTime)]
    next_attempt: Option<String>,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created: String,
    /// In order.
    attempts: Vec<AttemptView>,
}

/// One attempt to deliver a message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Attempt)]
struct AttemptView {
    /// From 1.
    number: u32,
    url: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    started: String,
    #[serde(flatten)]
    took: Took,
    /// The status of the answer; null when there was none.
    #[schema(required)]
    status: Option<u16>,
    /// Why it failed; null when the receiver accepted.
    #[schema(required)]
    error: Option<String>,
    /// Name and value, in the order in which they were sent.
    #[schema(schema_with = schema::header_pairs)]
    request_headers: Vec<(String, String)>,
    /// The beginning of the answer; null when the receiver accepted.
    #[schema(required)]
    response: Option<String>,
    /// Whether the answer was longer than what is shown.
    response_cut: bool,
}

/// How long an attempt took, and when in it its parts were done; microseconds. Null what it did not come to,
/// and where a connection was used again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Took {
    duration_micros: u64,
    #[schema(required)]
    resolved_micros: Option<u64>,
    #[schema(required)]
    connected_micros: Option<u64>,
    #[schema(required)]
    secured_micros: Option<u64>,
    #[schema(required)]
    first_byte_micros: Option<u64>,
}

impl Took {
    pub(super) fn of(attempt: &Attempt) -> Self {
        let timings = attempt.timings;
        Self {
            duration_micros: micros(attempt.duration),
            resolved_micros: timings.resolved.map(micros),
            connected_micros: timings.connected.map(micros),
            secured_micros: timings.secured.map(micros),
            first_byte_micros: timings.first_byte.map(micros),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Messages of a webhook, the newest first, with every attempt to deliver them
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}/deliveries",
    tag = "webhooks",
    operation_id = "listDeliveries",
    params(WebhookPath, ("limit" = Option<u32>, Query, minimum = 1, maximum = 50, description = "Default 20."), ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before."), ("state" = Option<schema::DeliveryState>, Query, description = "Only messages in this state."), ("sequence" = inline(Option<schema::SequenceNumber>), Query, description = "Only the message with this number.")),
    responses(
        (status = 200, description = "The page.", body = Page),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page>, ApiError> {
    let known = ["limit", "cursor", "state", "sequence"];
    let query = QueryMap::parse(query.as_deref().unwrap_or_default(), &known)?;
    let limit = PAGE.of(&query)?;
    let before = paging::cursor(&query)?.map(i64::cast_unsigned);
    let wanted = DeliveryQuery {
        before,
        state: query.get("state").map(parse_state).transpose()?,
        sequence: paging::number(&query, "sequence")?,
    };
    let deliveries = state
        .store
        .deliveries(&access, &parse_id(&id)?, wanted, limit)
        .await;
    let found = found(deliveries, &id)?;
    let full = found.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let last = found.last().map(|log| log.delivery.sequence);
    Ok(Json(Page {
        next_cursor: last
            .filter(|_| full && wanted.sequence.is_none())
            .map(|sequence| sequence.to_string()),
        deliveries: found.into_iter().map(delivery_of).collect(),
    }))
}

fn parse_state(text: &str) -> Result<DeliveryState, ApiError> {
    DeliveryState::from_name(text).ok_or_else(|| {
        let names = DeliveryState::ALL.map(DeliveryState::name).join(", ");
        ApiError::invalid("state", format!("must be one of {names}"))
    })
}

fn delivery_of(log: DeliveryLog) -> DeliveryView {
    let delivery = log.delivery;
    DeliveryView {
        id: delivery.id.to_string(),
        sequence: delivery.sequence,
        kind: delivery.kind.name(),
        slot: delivery.slot,
        state: delivery.state.name(),
        next_attempt: delivery.next_attempt_at.map(|time| time.to_string()),
        created: delivery.created.to_string(),
        attempts: log.attempts.into_iter().map(attempt_of).collect(),
    }
}

fn attempt_of(attempt: Attempt) -> AttemptView {
    AttemptView {
        took: Took::of(&attempt),
        number: attempt.number,
        url: attempt.url,
        started: attempt.started.to_string(),
        status: attempt.status,
        error: attempt.error,
        request_headers: attempt.request_headers,
        response: attempt.response,
        response_cut: attempt.response_cut,
    }
}

//! `GET /api/webhooks/{id}/events?after=SEQUENCE` and `/messages/{messageId}`: lists messages after a sequence number, and answers one.

use axum::{
    Json,
    extract::{Path, RawQuery, State as StateOf},
};
use serde::Serialize;
use serde_json::value::RawValue;
use sluice_store::{MessageId, StoredMessage};
use utoipa::ToSchema;

use super::{
    paging::{self, PageSize},
    parts::{Refusals, WebhookPath},
    problem::{found, missing, parse_id, store_error},
    state::State,
};
use crate::{auth::Caller, error::ApiError, extract::QueryMap};

const PAGE: PageSize = PageSize {
    default: 100,
    most: 1_000,
};

/// A page ends when it holds so many bytes of messages, however few: one may carry an account of 10 MiB.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventPage)]
pub(super) struct Page {
    /// In order of their sequence numbers.
    events: Vec<EventView>,
    /// The number of the webhook's newest message, 0 before the first.
    last_sequence: u64,
    /// The oldest number that is still kept; what came before was removed by retention. Null when nothing
    /// is.
    #[schema(required)]
    oldest_kept: Option<u64>,
}

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(super) struct EventView {
    /// The `webhook-id` with which it is delivered.
    id: String,
    /// The body, byte for byte as it is delivered.
    #[schema(value_type = Object)]
    body: Box<RawValue>,
}

/// Messages after a sequence number, whatever became of their delivery
///
/// For a receiver that finds a hole in the sequence numbers.
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}/events",
    tag = "webhooks",
    operation_id = "listEvents",
    params(WebhookPath, ("after" = inline(Option<super::schema::SequenceNumber>), Query, description = "Only messages with greater numbers. Default 0."), ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Default 100. A page of large ones may hold fewer.")),
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
    let query = QueryMap::parse(query.as_deref().unwrap_or_default(), &["after", "limit"])?;
    let limits = (PAGE.of(&query)?, PAGE_BYTES);
    let after = paging::number(&query, "after")?.unwrap_or(0);
    let webhook = parse_id(&id)?;
    let messages = state
        .store
        .messages_within(&access, &webhook, after, limits);
    let found = found(messages.await, &id)?;
    let events = found.messages.into_iter().map(view);
    Ok(Json(Page {
        events: events.collect::<Result<_, _>>()?,
        last_sequence: found.last_sequence,
        oldest_kept: found.oldest_kept,
    }))
}

/// The message of this `webhook-id`, whole
///
/// For what was delivered without its data.
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}/messages/{messageId}",
    tag = "webhooks",
    operation_id = "getMessage",
    params(WebhookPath, ("messageId" = String, Path, description = "Its `webhook-id`; in a batch its `id`.")),
    responses(
        (status = 200, description = "The message.", body = EventView),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn one(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path((id, message)): Path<(String, String)>,
) -> Result<Json<EventView>, ApiError> {
    state.webhook(&access, &id).await?;
    let missing = || missing("message", &message);
    let parsed = MessageId::parse(&message).map_err(|_| missing())?;
    let stored = state.store.message(&access, &parse_id(&id)?, &parsed).await;
    let stored = stored.map_err(store_error)?.ok_or_else(missing)?;
    Ok(Json(view(stored)?))
}

fn view(message: StoredMessage) -> Result<EventView, ApiError> {
    let body = RawValue::from_string(message.body);
    Ok(EventView {
        id: message.id.to_string(),
        body: body.map_err(|error| ApiError::Internal(error.into()))?,
    })
}

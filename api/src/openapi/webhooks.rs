//! The webhook routes, described by hand.

use serde::Deserialize;
use utoipa::{
    ToSchema,
    openapi::{
        Ref,
        schema::{Array, ArrayBuilder},
    },
};

use crate::{error::ProblemBody, extract::Address};

// The bodies that callers send derive `Deserialize` only so that the description reads serde's refusal of unknown fields.

/// What a subscriber wants.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes a body")]
struct WebhookDefinition {
    /// Callback URL, https; at most 2,048 bytes.
    #[schema(max_length = 2048, format = "uri")]
    url: String,
    #[schema(schema_with = event_kinds)]
    events: Vec<EventKind>,
    filters: WebhookFilters,
    /// Default true.
    active: Option<bool>,
}

/// The derived description cannot say that items are unique.
fn event_kinds() -> Array {
    ArrayBuilder::new()
        .items(Ref::from_schema_name(EventKind::name()))
        .min_items(Some(1))
        .unique_items(true)
        .description(Some("Kinds of event, each at most once."))
        .build()
}

/// A kind of event.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum EventKind {
    AccountChange,
    Transaction,
    ProgramEvent,
}

/// What the events are about: at least one account or program.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes a body")]
struct WebhookFilters {
    /// Addresses of accounts, at most 100,000.
    #[schema(max_items = 100_000, nullable = false, value_type = Option<Vec<Address>>)]
    accounts: Option<Vec<String>>,
    /// Addresses of programs, at most 1,000.
    #[schema(max_items = 1000, nullable = false, value_type = Option<Vec<Address>>)]
    programs: Option<Vec<String>>,
}

/// A subscription.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes a body")]
struct Webhook {
    id: String,
    url: String,
    events: Vec<EventKind>,
    filters: WebhookFilters,
    active: bool,
    /// ISO 8601, UTC.
    created: String,
    /// ISO 8601, UTC; null before the first delivery that the receiver accepted.
    #[schema(required)]
    last_triggered: Option<String>,
}

/// A new subscription.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes a body")]
struct CreatedWebhook {
    webhook: Webhook,
    /// The signing secret, which no other answer shows.
    secret: String,
}

/// A page of subscriptions.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes a body")]
struct WebhookPage {
    webhooks: Vec<Webhook>,
    /// Opaque; null on the last page.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// A page of webhooks, in order of creation
#[utoipa::path(
    get,
    path = "/api/webhooks",
    tag = "webhooks",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Default 20."),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before."),
    ),
    responses(
        (status = 200, description = "The page.", body = WebhookPage),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
#[expect(dead_code, reason = "carries the description")]
pub(super) fn list() {}

/// Creates a webhook
#[utoipa::path(
    post,
    path = "/api/webhooks",
    tag = "webhooks",
    request_body = WebhookDefinition,
    responses(
        (status = 201, description = "The webhook, and its secret this once.", body = CreatedWebhook),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
#[expect(dead_code, reason = "carries the description")]
pub(super) fn create() {}

/// One webhook
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}",
    tag = "webhooks",
    params(("id" = String, Path, description = "Its identifier.")),
    responses(
        (status = 200, description = "The webhook.", body = Webhook),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
#[expect(dead_code, reason = "carries the description")]
pub(super) fn get() {}

/// Replaces a webhook's definition as a whole
#[utoipa::path(
    put,
    path = "/api/webhooks/{id}",
    tag = "webhooks",
    params(("id" = String, Path, description = "Its identifier.")),
    request_body = WebhookDefinition,
    responses(
        (status = 200, description = "The webhook.", body = Webhook),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
#[expect(dead_code, reason = "carries the description")]
pub(super) fn update() {}

/// Removes a webhook, with everything that it is still owed
#[utoipa::path(
    delete,
    path = "/api/webhooks/{id}",
    tag = "webhooks",
    params(("id" = String, Path, description = "Its identifier.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
#[expect(dead_code, reason = "carries the description")]
pub(super) fn delete() {}

//! `POST /api/webhooks/{id}/test`: posts a signed sample of every kind asked for, and stores nothing.

use axum::{
    Json,
    extract::{Path, State as StateOf},
};
use futures::future::join_all;
use serde::Serialize;
use sluice_store::{
    Commitment, MessageId, MessageKind, OperationKind, Secrets, Timestamp, Webhook,
};
use sluice_webhook_client::{WebhookRequest, batch_body, payload};
use utoipa::ToSchema;

use super::{
    deliveries::Took,
    parts::{Refusals, WebhookPath},
    problem::{found, store_error},
    sample, schema,
    state::State,
};
use crate::{auth::Caller, error::ApiError};

/// What became of a test.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Tested {
    /// Whether the receiver accepted every sample.
    accepted: bool,
    results: Vec<TestResult>,
}

/// What became of one sample. What the receiver answered beyond its status is not shown: a test must not
/// be a way to read what only this server can reach.
#[derive(Debug, Serialize, ToSchema)]
struct TestResult {
    #[serde(rename = "type")]
    #[schema(value_type = schema::MessageKind)]
    kind: &'static str,
    /// The `webhook-id` it was sent with.
    id: String,
    accepted: bool,
    #[schema(required)]
    status: Option<u16>,
    #[schema(required)]
    error: Option<String>,
    #[serde(flatten)]
    took: Took,
}

/// Sends a signed sample of every kind that the webhook asks for, of events and of operations
///
/// They go out by the client of real deliveries; the answer says what became of them. Nothing is stored, and `lastTriggered` stays. Tests
/// have a rate limit of their own, because somebody else's server may be at the URL.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/test",
    tag = "webhooks",
    operation_id = "testWebhook",
    params(WebhookPath),
    responses(
        (status = 200, description = "What became of the samples.", body = Tested),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
) -> Result<Json<Tested>, ApiError> {
    let webhook = state.webhook(&access, &id).await?;
    if webhook.relay_until.is_some() {
        return Err(ApiError::WrongKindOfWebhook {
            fault: "a temporary webhook has no URL to which a test could be sent",
        });
    }
    state.tests.count(&access)?;
    let now = Timestamp::from(state.clock.now());
    let secrets = state.store.secrets(&access, &webhook.id, now).await;
    let secrets = found(secrets, &id)?;
    let slot = state.store.checkpoint(Commitment::Confirmed).await;
    let slot = slot.map_err(store_error)?.unwrap_or(0);
    let definition = &webhook.definition;
    let operations = definition.operations.iter().copied();
    let kinds = definition.events.iter().map(MessageKind::Event);
    let kinds = kinds.chain(operations.map(OperationKind::message_kind));
    let results = join_all(kinds.map(|kind| {
        let body = sample::body(&webhook.id, definition, kind, slot, now);
        send(&state, &webhook, &secrets, kind, body)
    }))
    .await;
    Ok(Json(Tested {
        accepted: results.iter().all(|result| result.accepted),
        results,
    }))
}

async fn send(
    state: &State,
    webhook: &Webhook,
    secrets: &Secrets,
    kind: MessageKind,
    body: String,
) -> TestResult {
    let id = MessageId::from_bytes(rand::random());
    let definition = &webhook.definition;
    // Without its data, and as a batch of one, where the receiver will get it so.
    let body = payload(&body, &definition.delivery);
    let body = match definition.batch {
        None => body,
        Some(_) => batch_body([(&id, &*body)]).into(),
    };
    let request = WebhookRequest {
        id: &id,
        url: &definition.url,
        secrets,
        headers: &definition.headers,
        gzip: definition.gzip,
        options: &definition.delivery,
        body: &body,
    };
    let now = state.clock.time_of_day();
    let attempt = state.client.post(&request, now).await;
    TestResult {
        kind: kind.name(),
        id: id.to_string(),
        accepted: attempt.accepted(),
        status: attempt.status,
        took: Took::of(&attempt),
        error: attempt.error,
    }
}

//! `/api/webhooks/{id}/backfill` and `/dry-run`: has slots read again for one webhook, and shows what came of it.

use axum::{
    Json,
    extract::{Path, Request, State as StateOf},
    http::StatusCode,
    response::IntoResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sluice_store::{
    Access, Backfill, BackfillKind, BackfillRequest, Commitment, EventKind, Timestamp, Webhook,
    WebhookId,
};
use utoipa::ToSchema;

use super::{
    limits::{MAX_BACKFILL_SLOTS, MAX_DRY_RUN_SLOTS, SMALL_BODY_BYTES},
    parts::{Refusals, WebhookPath},
    problem::{found, missing, parse_id, store_error},
    schema,
    state::State,
};
use crate::{auth::Caller, error::ApiError, extract::read_json};

/// Which slots are to be told, both ends included.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BackfillBody {
    from_slot: u64,
    /// At most 26,999 after the first, and not after the last one that was read.
    to_slot: u64,
}

/// How many slots are to be looked at, up to the last one that was read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DryRunBody {
    #[schema(minimum = 1, maximum = 1000)]
    slots: u64,
}

/// A backfill, and how far it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Backfill)]
struct BackfillView {
    #[schema(schema_with = schema::backfill_state)]
    state: &'static str,
    from_slot: u64,
    to_slot: u64,
    /// The first slot that was not read yet.
    next_slot: u64,
    /// Messages that the slots cause.
    matched: u64,
    /// Those of them that were not stored before: they are delivered like all others.
    told: u64,
    /// Slots that the node does not have, so that nothing of them can be told.
    lost_slots: u64,
    /// Kinds to which the webhook subscribes and that no node has: nothing of them can be told.
    #[schema(value_type = Vec<schema::EventKind>)]
    missing_kinds: Vec<&'static str>,
    /// Why it was given up, where it was.
    #[schema(required)]
    error: Option<String>,
    /// When it was asked for: ISO 8601, UTC.
    #[schema(format = DateTime)]
    created: String,
}

/// A dry run, and how far it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DryRun)]
struct DryRunView {
    #[schema(schema_with = schema::backfill_state)]
    state: &'static str,
    from_slot: u64,
    to_slot: u64,
    /// The first slot that was not read yet.
    next_slot: u64,
    /// Messages that the slots would have caused.
    matched: u64,
    /// The first of them, up to ten and 256 KiB, with the number 0, since none is stored.
    #[schema(value_type = Vec<Object>)]
    samples: Box<RawValue>,
    /// Slots that the node does not have.
    lost_slots: u64,
    /// Kinds to which the webhook subscribes and that no node has: they are not looked for.
    #[schema(value_type = Vec<schema::EventKind>)]
    missing_kinds: Vec<&'static str>,
    /// Why it was given up, where it was.
    #[schema(required)]
    error: Option<String>,
    /// When it was asked for: ISO 8601, UTC.
    #[schema(format = DateTime)]
    created: String,
}

/// Has slots told that the webhook did not watch
///
/// They are read from the node's ledger, some at a time, and what they cause has the ids that it would have had: what was told
/// before is not told again. Changes of accounts are in no ledger; `missingKinds` names them. The one before must be done.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/backfill",
    tag = "webhooks",
    operation_id = "requestBackfill",
    params(WebhookPath),
    request_body = BackfillBody,
    responses(
        (status = 202, description = "The slots will be read.", body = BackfillView),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn request(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    let body: BackfillBody = read_json(request, SMALL_BODY_BYTES).await?;
    let (webhook, last_read) = subject(&state, &access, &id).await?;
    let (first_slot, last_slot) = (body.from_slot, body.to_slot);
    if first_slot > last_slot {
        let fault = format!("must not be before fromSlot, which is {first_slot}");
        return Err(ApiError::invalid("toSlot", fault));
    }
    if last_slot - first_slot >= MAX_BACKFILL_SLOTS {
        let fault = format!(
            "must be at most {} after fromSlot; ask for the slots after {} when these are told",
            MAX_BACKFILL_SLOTS - 1,
            first_slot.saturating_add(MAX_BACKFILL_SLOTS - 1)
        );
        return Err(ApiError::invalid("toSlot", fault));
    }
    if last_slot > last_read {
        let fault = format!("must not be after slot {last_read}, the last one that was read");
        return Err(ApiError::invalid("toSlot", fault));
    }
    let now = Timestamp::from(state.clock.now());
    let room = state.store.check_messages(&access, now).await;
    room.map_err(store_error)?;
    let slots = (first_slot, last_slot);
    let asked = ask(&state, &access, &id, BackfillKind::Tell, slots).await?;
    Ok((StatusCode::ACCEPTED, Json(view(asked, &webhook))))
}

/// How far the newest backfill of the webhook is
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}/backfill",
    tag = "webhooks",
    operation_id = "getBackfill",
    params(WebhookPath),
    responses(
        (status = 200, description = "The backfill.", body = BackfillView),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn get(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, ApiError> {
    let (webhook, newest) = newest(&state, &access, &id, BackfillKind::Tell).await?;
    let newest = newest.ok_or_else(|| missing("backfill of the webhook", &id))?;
    Ok(Json(view(newest, &webhook)))
}

/// Shows what the webhook would have matched in the last slots
///
/// They are read from the node's ledger and matched like all others; nothing is stored or sent. The one before must be done.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/dry-run",
    tag = "webhooks",
    operation_id = "requestDryRun",
    params(WebhookPath),
    request_body = DryRunBody,
    responses(
        (status = 202, description = "The slots will be read.", body = DryRunView),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn request_dry_run(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    let body: DryRunBody = read_json(request, SMALL_BODY_BYTES).await?;
    if !(1..=MAX_DRY_RUN_SLOTS).contains(&body.slots) {
        let fault = format!("must be from 1 to {MAX_DRY_RUN_SLOTS}");
        return Err(ApiError::invalid("slots", fault));
    }
    let (webhook, last_read) = subject(&state, &access, &id).await?;
    let slots = (last_read.saturating_sub(body.slots - 1), last_read);
    let asked = ask(&state, &access, &id, BackfillKind::DryRun, slots).await?;
    Ok((StatusCode::ACCEPTED, Json(dry_run_view(asked, &webhook)?)))
}

/// How far the newest dry run of the webhook is, and what it has found
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}/dry-run",
    tag = "webhooks",
    operation_id = "getDryRun",
    params(WebhookPath),
    responses(
        (status = 200, description = "The dry run.", body = DryRunView),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn get_dry_run(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, ApiError> {
    let (webhook, newest) = newest(&state, &access, &id, BackfillKind::DryRun).await?;
    let newest = newest.ok_or_else(|| missing("dry run of the webhook", &id))?;
    Ok(Json(dry_run_view(newest, &webhook)?))
}

/// The webhook, and the last slot that was read for webhooks of its commitment.
async fn subject(state: &State, access: &Access, id: &str) -> Result<(Webhook, u64), ApiError> {
    let webhook = webhook(state, access, id).await?;
    let events = webhook.definition.events;
    if !events.transaction && !events.program_event {
        let fault = if events.account_change {
            "of the webhook are changes of accounts alone, which no node's ledger has; read the accounts themselves"
        } else {
            "of the webhook are none, for it is told of operations alone, which no node's ledger has; name another webhook"
        };
        return Err(ApiError::invalid("events", fault));
    }
    let commitment = webhook.definition.commitment.max(Commitment::Confirmed);
    let last_read = state.store.checkpoint(commitment).await;
    let last_read = last_read.map_err(store_error)?.ok_or_else(|| {
        ApiError::invalid(
            "id",
            "names a webhook of a service that has read no slot yet; try again later",
        )
    })?;
    Ok((webhook, last_read))
}

async fn webhook(state: &State, access: &Access, id: &str) -> Result<Webhook, ApiError> {
    found(state.store.webhook(access, &parse_id(id)?).await, id)
}

async fn ask(
    state: &State,
    access: &Access,
    id: &str,
    kind: BackfillKind,
    (first_slot, last_slot): (u64, u64),
) -> Result<Backfill, ApiError> {
    let request = BackfillRequest {
        kind,
        first_slot,
        last_slot,
        now: Timestamp::from(state.clock.now()),
    };
    let webhook: WebhookId = parse_id(id)?;
    let asked = state.store.request_backfill(access, &webhook, &request);
    found(asked.await, id)
}

async fn newest(
    state: &State,
    access: &Access,
    id: &str,
    kind: BackfillKind,
) -> Result<(Webhook, Option<Backfill>), ApiError> {
    let webhook = webhook(state, access, id).await?;
    let newest = state.store.backfill(access, &webhook.id, kind).await;
    Ok((webhook, newest.map_err(store_error)?))
}

/// What the webhook subscribes to and no ledger has.
fn missing_kinds(webhook: &Webhook) -> Vec<&'static str> {
    let kinds = webhook.definition.events.iter();
    kinds
        .filter(|kind| *kind == EventKind::AccountChange)
        .map(EventKind::name)
        .collect()
}

fn view(backfill: Backfill, webhook: &Webhook) -> BackfillView {
    BackfillView {
        state: backfill.state.name(),
        from_slot: backfill.first_slot,
        to_slot: backfill.last_slot,
        next_slot: backfill.next_slot,
        matched: backfill.matched,
        told: backfill.told,
        lost_slots: backfill.lost,
        missing_kinds: missing_kinds(webhook),
        error: backfill.error,
        created: backfill.created.to_string(),
    }
}

fn dry_run_view(backfill: Backfill, webhook: &Webhook) -> Result<DryRunView, ApiError> {
    let samples = RawValue::from_string(backfill.samples);
    Ok(DryRunView {
        state: backfill.state.name(),
        from_slot: backfill.first_slot,
        to_slot: backfill.last_slot,
        next_slot: backfill.next_slot,
        matched: backfill.matched,
        samples: samples.map_err(|error| ApiError::Internal(error.into()))?,
        lost_slots: backfill.lost,
        missing_kinds: missing_kinds(webhook),
        error: backfill.error,
        created: backfill.created.to_string(),
    })
}

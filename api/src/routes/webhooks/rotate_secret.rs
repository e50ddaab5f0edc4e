//! `POST /api/webhooks/{id}/rotate-secret`: makes a new signing secret beside the previous ones.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, Request, State as StateOf},
    http::header,
    response::IntoResponse,
};
use serde::{Deserialize, Serialize};
use sluice_store::{Secret, Timestamp};
use utoipa::ToSchema;

use super::{
    limits::{MAX_OVERLAP_SECS, SMALL_BODY_BYTES},
    parts::{Refusals, WebhookPath},
    problem::{found, parse_id},
    schema,
    state::State,
};
use crate::{auth::Caller, error::ApiError, extract::read_optional_json};

/// How the change of secrets goes.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RotateBody {
    /// How long the secret before signs as well, seconds; the configured time when absent. Secrets before that one
    /// end no later.
    #[schema(schema_with = schema::optional_overlap)]
    overlap_seconds: Option<u64>,
}

/// A new signing secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Rotated {
    /// No other answer shows it.
    secret: String,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    previous_secret_until: String,
}

/// Makes a new signing secret and shows it, once
///
/// Until the overlap is over, deliveries carry the
/// signatures of both, so that the receiver can change over in its own time. A rotation before that leaves
/// one more to sign; an overlap of 0 ends all of them at once.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/rotate-secret",
    tag = "webhooks",
    operation_id = "rotateSecret",
    params(WebhookPath),
    request_body(content = Option<RotateBody>),
    responses(
        (status = 200, description = "The secret, this once.", body = Rotated),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn rotate(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    let body: RotateBody = read_optional_json(request, SMALL_BODY_BYTES).await?;
    let overlap = match body.overlap_seconds {
        None => state.settings.secret_overlap,
        Some(seconds) if seconds <= MAX_OVERLAP_SECS => Duration::from_secs(seconds),
        Some(_) => {
            return Err(ApiError::invalid(
                "overlapSeconds",
                format!("must be 0 to {MAX_OVERLAP_SECS}, which is a week"),
            ));
        }
    };
    let secret = Secret::from_random(rand::random());
    let now = Timestamp::from(state.clock.now());
    let until = now.after(overlap);
    let rotation = state
        .store
        .rotate_secret(&access, &parse_id(&id)?, &secret, until, now)
        .await;
    found(rotation, &id)?;
    let rotated = Rotated {
        secret: secret.expose().to_owned(),
        previous_secret_until: until.to_string(),
    };
    // The secret must not end up in a cache.
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(rotated)))
}

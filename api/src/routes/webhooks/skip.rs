//! `POST /api/webhooks/{id}/skip`: gives up a message that its receiver will never accept.

use axum::{
    Json,
    extract::{Path, Request, State as StateOf},
};
use serde::{Deserialize, Serialize};
use sluice_store::{MessageId, Skipped, Timestamp};
use utoipa::ToSchema;

use super::{
    limits::SMALL_BODY_BYTES,
    parts::{Refusals, WebhookPath},
    problem::{found, missing, parse_id},
    state::State,
};
use crate::{auth::Caller, error::ApiError, extract::read_json};

/// Which message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SkipBody {
    /// Its id, so that a repeated request skips no other one.
    id: String,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SkipAnswer {
    /// Whether it was waiting, and is given up now; false when it had been delivered or given up before.
    skipped: bool,
}

/// Gives a message up, so that those after it have their turn
///
/// It is in the state `failed` then, as one past its last attempt, and can be redelivered.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/skip",
    tag = "webhooks",
    operation_id = "skipMessage",
    params(WebhookPath),
    request_body = SkipBody,
    responses(
        (status = 200, description = "It holds up no other one.", body = SkipAnswer),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<SkipAnswer>, ApiError> {
    let body: SkipBody = read_json(request, SMALL_BODY_BYTES).await?;
    let unknown = || missing("message", &body.id);
    let message = MessageId::parse(&body.id).map_err(|_| unknown())?;
    let now = Timestamp::from(state.clock.now());
    let skipped = state
        .store
        .skip(&access, &parse_id(&id)?, &message, now)
        .await;
    match found(skipped, &id)? {
        Skipped::Unknown => Err(unknown()),
        Skipped::Skipped => Ok(Json(SkipAnswer { skipped: true })),
        Skipped::Finished => Ok(Json(SkipAnswer { skipped: false })),
    }
}

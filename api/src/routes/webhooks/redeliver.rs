//! `POST /api/webhooks/{id}/redeliver`

use std::time::SystemTime;

use axum::{
    Json,
    extract::{Path, Request, State as StateOf},
    http::StatusCode,
    response::IntoResponse,
};
use serde::{Deserialize, Serialize};
use sluice_store::{MessageId, Redeliver, Timestamp};
use utoipa::ToSchema;

use super::{
    SMALL_BODY_BYTES, State, missing, not_found,
    openapi::{Refusals, WebhookPath},
    parse_id, store_error,
};
use crate::{auth::Caller, error::ApiError, extract::read_json};

/// Which messages: exactly one of the three.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RedeliverBody {
    /// One message.
    id: Option<String>,
    /// Those with sequence numbers from the first to the last, both included.
    sequences: Option<Sequences>,
    /// Those that were given up.
    failed: Option<bool>,
}

/// Sequence numbers of messages.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Sequences {
    first: u64,
    last: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct Redelivered {
    /// Messages that are due now because of this request.
    redelivered: u64,
}

impl RedeliverBody {
    fn which(self) -> Result<Redeliver, ApiError> {
        let wanted = match (self.id, self.sequences, self.failed) {
            (Some(id), None, None) => MessageId::parse(&id)
                .map(Redeliver::Message)
                .map_err(|_| missing("message", &id))?,
            (None, Some(Sequences { first, last }), None) if first <= last => {
                Redeliver::Range(first, last)
            }
            (None, Some(_), None) => {
                return Err(ApiError::invalid(
                    "sequences",
                    "must have a first that is not greater than its last",
                ));
            }
            (None, None, Some(true)) => Redeliver::Failed,
            _ => {
                return Err(ApiError::InvalidBody(
                    "give exactly one of id, sequences {first, last} and failed: true".to_owned(),
                ));
            }
        };
        Ok(wanted)
    }
}

/// Makes messages due again, whatever became of them
///
/// They keep their ids and sequence numbers.
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/redeliver",
    tag = "webhooks",
    operation_id = "redeliver",
    params(WebhookPath),
    request_body = RedeliverBody,
    responses(
        (status = 202, description = "They are due.", body = Redelivered),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    let body: RedeliverBody = read_json(request, SMALL_BODY_BYTES).await?;
    let which = body.which()?;
    let now = Timestamp::from(SystemTime::now());
    let redelivered = state
        .store
        .redeliver(&access, &parse_id(&id)?, &which, now)
        .await
        .map_err(store_error)?
        .ok_or_else(|| not_found(&id))?;
    match which {
        // One that is being delivered just now counts as neither.
        Redeliver::Message(message) if redelivered == 0 => Err(missing(
            "finished message, or one that waits for a retry, with the id",
            message.as_str(),
        )),
        _ => Ok((StatusCode::ACCEPTED, Json(Redelivered { redelivered }))),
    }
}

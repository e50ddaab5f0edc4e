//! `POST /api/webhooks/{id}/redeliver`: makes messages due again.

use axum::{
    Json,
    extract::{Path, Request, State as StateOf},
    http::StatusCode,
    response::IntoResponse,
};
use serde::{Deserialize, Deserializer, Serialize};
use sluice_store::{MessageId, Redeliver, Timestamp};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        OneOfBuilder, RefOr, Schema,
        schema::{AdditionalProperties, ObjectBuilder, Type},
    },
};

use super::{
    limits::SMALL_BODY_BYTES,
    parts::{Refusals, WebhookPath},
    problem::{found, missing, parse_id, store_error},
    schema,
    state::State,
};
use crate::{auth::Caller, error::ApiError, extract::read_json};

/// Which messages: exactly one of the three.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedeliverBody {
    #[serde(default, deserialize_with = "not_null")]
    id: Option<String>,
    #[serde(default, deserialize_with = "not_null")]
    sequences: Option<Sequences>,
    #[serde(default, deserialize_with = "not_null")]
    failed: Option<bool>,
}

/// A member that may be absent, but not null, which would be one of several.
fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Sequence numbers of messages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sequences {
    first: u64,
    last: u64,
}

impl PartialSchema for RedeliverBody {
    fn schema() -> RefOr<Schema> {
        let number = || schema::SequenceNumber::schema();
        let sequences = object("Those with numbers from the first to the last, both included.")
            .property("first", number())
            .required("first")
            .property("last", number())
            .required("last");
        let id = ObjectBuilder::new().schema_type(Type::String);
        let failed = ObjectBuilder::new()
            .schema_type(Type::Boolean)
            .enum_values(Some([true]));
        let only = |name: &str, about: &str, value: ObjectBuilder| {
            object(about).property(name, value).required(name)
        };
        OneOfBuilder::new()
            .item(only("id", "One message.", id))
            .item(only("sequences", "A range of messages.", sequences))
            .item(only("failed", "Those that were given up.", failed))
            .description(Some("Which messages."))
            .into()
    }
}

impl ToSchema for RedeliverBody {}

fn object(about: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(about))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
}

#[derive(Debug, Serialize, ToSchema)]
struct Redelivered {
    /// Messages that are due now because of this request.
    redelivered: u64,
}

impl RedeliverBody {
    fn which(self) -> Result<Redeliver, ApiError> {
        let named = [
            ("id", self.id.is_some()),
            ("sequences", self.sequences.is_some()),
            ("failed", self.failed.is_some()),
        ];
        let mut named = named
            .into_iter()
            .filter_map(|(name, is)| is.then_some(name));
        if let (Some(first), Some(second)) = (named.next(), named.next()) {
            return Err(ApiError::invalid(
                second,
                format!("cannot be combined with {first}; send one request for each"),
            ));
        }
        match (self.id, self.sequences, self.failed) {
            (Some(id), ..) => MessageId::parse(&id)
                .map(Redeliver::Message)
                .map_err(|_| missing("message", &id)),
            (_, Some(Sequences { first, last }), _) if first <= last => {
                Ok(Redeliver::Range(first, last))
            }
            (_, Some(_), _) => Err(ApiError::invalid(
                "sequences",
                "must have a first that is not greater than its last",
            )),
            (_, _, Some(true)) => Ok(Redeliver::Failed),
            (_, _, Some(false)) => Err(ApiError::invalid(
                "failed",
                "must be true; give id or sequences for other messages",
            )),
            (None, None, None) => Err(ApiError::InvalidBody(
                "give one of id, sequences {first, last} and failed: true".to_owned(),
            )),
        }
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
    let now = Timestamp::from(state.clock.now());
    // What is owed again is kept longer than what is finished.
    let room = state.store.check_messages(&access, now).await;
    room.map_err(store_error)?;
    let redelivered = state
        .store
        .redeliver(&access, &parse_id(&id)?, &which, now)
        .await;
    let redelivered = found(redelivered, &id)?;
    match which {
        // One that is being delivered just now counts as neither.
        Redeliver::Message(message) if redelivered == 0 => Err(missing(
            "finished message, or one that waits for a retry, with the id",
            message.as_str(),
        )),
        _ => Ok((StatusCode::ACCEPTED, Json(Redelivered { redelivered }))),
    }
}

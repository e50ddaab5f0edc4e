//! `/api/webhooks/{id}/operations`: of which operations a webhook is told.

use std::collections::BTreeSet;

use axum::{
    Json,
    extract::{Path, Request, State as StateOf},
};
use serde::{Deserialize, Serialize};
use sluice_store::{OperationKind, StoreError};
use utoipa::ToSchema;

use super::{
    limits::SMALL_BODY_BYTES,
    parts::{Refusals, WebhookPath},
    problem::{found, parse_id},
    schema,
    state::State,
};
use crate::{auth::Caller, error::ApiError, extract::read_json};

/// Of what the webhook is to be told.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OperationsBody {
    /// Empty for nothing.
    #[schema(value_type = Vec<schema::OperationKindName>)]
    events: Vec<String>,
}

/// Of what the webhook is told.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Operations {
    #[schema(value_type = Vec<schema::OperationKindName>)]
    events: Vec<&'static str>,
}

/// Has the webhook told what becomes of the caller's other webhooks
///
/// It is sent messages of these types beside its own: an endpoint is switched off or fails, slots are missing, a quota is used up, a
/// filter is refused. Of itself it is told nothing.
#[utoipa::path(
    put,
    path = "/api/webhooks/{id}/operations",
    tag = "webhooks",
    operation_id = "setOperations",
    params(WebhookPath),
    request_body = OperationsBody,
    responses(
        (status = 200, description = "Of these it is told from now on.", body = Operations),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn put(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Operations>, ApiError> {
    let body: OperationsBody = read_json(request, SMALL_BODY_BYTES).await?;
    let kinds = kinds("events", &body.events)?;
    let webhook = parse_id(&id)?;
    let set = state.store.set_operations(&access, &webhook, &kinds).await;
    if let Err(StoreError::MatchesNothing) = set {
        let fault = "must name at least one, because the webhook watches nothing else; switch it off (active: false) or delete it";
        return Err(ApiError::invalid("events", fault));
    }
    found(set, &id)?;
    Ok(Json(view(&kinds)))
}

/// Of which operations the webhook is told
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}/operations",
    tag = "webhooks",
    operation_id = "getOperations",
    params(WebhookPath),
    responses(
        (status = 200, description = "Of these it is told.", body = Operations),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn get(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
) -> Result<Json<Operations>, ApiError> {
    let kinds = state.store.operations(&access, &parse_id(&id)?).await;
    Ok(Json(view(&found(kinds, &id)?)))
}

/// The kinds of these names, each of which may be there once.
///
/// # Errors
/// The first fault, with its place in `list`.
pub(super) fn kinds(list: &str, names: &[String]) -> Result<BTreeSet<OperationKind>, ApiError> {
    let mut kinds = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        let field = || format!("{list}[{index}]");
        let kind = OperationKind::from_name(name).ok_or_else(|| {
            let known = OperationKind::ALL.map(OperationKind::name).join(", ");
            ApiError::invalid(field(), format!("must be one of {known}"))
        })?;
        if !kinds.insert(kind) {
            let fault = format!("{name} is named twice; name it once");
            return Err(ApiError::invalid(field(), fault));
        }
    }
    Ok(kinds)
}

fn view(kinds: &BTreeSet<OperationKind>) -> Operations {
    Operations {
        events: kinds.iter().map(|kind| kind.name()).collect(),
    }
}

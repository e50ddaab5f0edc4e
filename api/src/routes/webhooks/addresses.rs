//! `POST` and `DELETE /api/webhooks/{id}/accounts` and `/programs`: adds and removes watched addresses.

use axum::{
    Json,
    extract::{Path, Request, State as StateOf},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use sluice_store::{Access, FilterEdit, Filters};
use utoipa::ToSchema;

use super::{
    definition,
    etag::{etag, expected_version},
    parts::{IfMatch, Refusals, WebhookPath},
    problem::{found, parse_id, store_error},
    schema, served,
    state::State,
    view::FilterView,
};
use crate::{auth::Caller, error::ApiError, extract::read_json};

/// Some accounts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AccountsBody {
    #[schema(required, schema_with = schema::accounts)]
    accounts: Option<Vec<String>>,
}

/// Some programs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProgramsBody {
    #[schema(required, schema_with = schema::programs)]
    programs: Option<Vec<String>>,
}

/// What an edit did: keys that were there already, or were not there, are not counted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FilterEdit)]
struct Edited {
    added: usize,
    removed: usize,
    filter: FilterView,
}

/// Adds accounts; those that are there stay
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/accounts",
    tag = "webhooks",
    operation_id = "addAccounts",
    params(WebhookPath, IfMatch),
    request_body = AccountsBody,
    responses(
        (status = 200, description = "What was changed.", body = Edited, headers(("ETag" = String, description = "Its version, for `If-Match`."))),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn add_accounts(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let edit = adding(accounts(&state, request).await?);
    apply(&state, &access, &id, &headers, &edit).await
}

/// Removes accounts; those that are not there are no fault
#[utoipa::path(
    delete,
    path = "/api/webhooks/{id}/accounts",
    tag = "webhooks",
    operation_id = "removeAccounts",
    params(WebhookPath, IfMatch),
    request_body = AccountsBody,
    responses(
        (status = 200, description = "What was changed.", body = Edited, headers(("ETag" = String, description = "Its version, for `If-Match`."))),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn remove_accounts(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let edit = removing(accounts(&state, request).await?);
    apply(&state, &access, &id, &headers, &edit).await
}

/// Adds programs; those that are there stay
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/programs",
    tag = "webhooks",
    operation_id = "addPrograms",
    params(WebhookPath, IfMatch),
    request_body = ProgramsBody,
    responses(
        (status = 200, description = "What was changed.", body = Edited, headers(("ETag" = String, description = "Its version, for `If-Match`."))),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn add_programs(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let edit = adding(programs(&state, request).await?);
    apply(&state, &access, &id, &headers, &edit).await
}

/// Removes programs; those that are not there are no fault
#[utoipa::path(
    delete,
    path = "/api/webhooks/{id}/programs",
    tag = "webhooks",
    operation_id = "removePrograms",
    params(WebhookPath, IfMatch),
    request_body = ProgramsBody,
    responses(
        (status = 200, description = "What was changed.", body = Edited, headers(("ETag" = String, description = "Its version, for `If-Match`."))),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn remove_programs(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let edit = removing(programs(&state, request).await?);
    apply(&state, &access, &id, &headers, &edit).await
}

fn adding(add: Filters) -> FilterEdit {
    FilterEdit {
        add,
        ..FilterEdit::default()
    }
}

fn removing(remove: Filters) -> FilterEdit {
    FilterEdit {
        remove,
        ..FilterEdit::default()
    }
}

async fn accounts(state: &State, request: Request) -> Result<Filters, ApiError> {
    let body: AccountsBody = read_json(request, state.settings.max_body_bytes()).await?;
    let field = "accounts";
    let texts = body.accounts.ok_or(ApiError::MissingField { field })?;
    Ok(Filters {
        accounts: definition::addresses(field, &texts, state.settings.addresses.accounts)?,
        programs: Vec::new(),
        ..Filters::default()
    })
}

async fn programs(state: &State, request: Request) -> Result<Filters, ApiError> {
    let body: ProgramsBody = read_json(request, state.settings.max_body_bytes()).await?;
    let field = "programs";
    let texts = body.programs.ok_or(ApiError::MissingField { field })?;
    Ok(Filters {
        accounts: Vec::new(),
        programs: definition::addresses(field, &texts, state.settings.addresses.programs)?,
        ..Filters::default()
    })
}

async fn apply(
    state: &State,
    access: &Access,
    id: &str,
    headers: &HeaderMap,
    edit: &FilterEdit,
) -> Result<Response, ApiError> {
    let expected = expected_version(headers)?;
    served::check_added(state, access, id, &edit.add).await?;
    let edited = state
        .store
        .edit_filters(
            access,
            &parse_id(id)?,
            edit,
            state.settings.addresses,
            expected,
        )
        .await;
    let edited = found(edited, id)?;
    let filter = FilterView::of(&state.store, &edited.webhook).await;
    let answer = Edited {
        added: edited.added.count(),
        removed: edited.removed.count(),
        filter: filter.map_err(store_error)?,
    };
    Ok((etag(edited.webhook.version), Json(answer)).into_response())
}

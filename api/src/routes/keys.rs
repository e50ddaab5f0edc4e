//! API keys of the installation: lists, makes and revokes them, for callers whose own key has the scope `keys:write`.
//!
//! A key gives another no more than it has: no other scope, no later end, no higher limit. Revoking the last one opens nothing,
//! since callers without a key are let in only while none was ever made.

mod create;
mod list;
mod revoke;
#[cfg(test)]
mod tests;
mod view;

use axum::{Router, extract::FromRequestParts, http::request::Parts, middleware};
use service_kit::Clock;
use sluice_store::{Store, StoreError};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    auth::{self, Authenticator, Grant},
    error::ApiError,
};

/// Longest body that is read, bytes: a few short fields.
const MAX_BODY_BYTES: usize = 4_096;

/// Most keys, revoked ones included, beside which another is made here: a list is answered whole. On the server
/// `sluice keys add` makes more.
const MAX_KEYS: usize = 1_000;

/// What the routes need.
#[derive(Clone)]
struct Keys {
    store: Store,
    clock: Clock,
}

fn described() -> OpenApiRouter<Keys> {
    OpenApiRouter::default()
        .routes(routes!(list::handler, create::handler))
        .routes(routes!(revoke::handler))
}

/// The description of these routes.
#[must_use]
pub fn description() -> utoipa::openapi::OpenApi {
    described().into_openapi()
}

/// The routes, complete with their state, behind `authenticator`.
pub fn router(store: Store, authenticator: Authenticator, clock: Clock) -> Router {
    let (routes, _) = described().split_for_parts();
    let layer = middleware::from_fn_with_state(authenticator, auth::authenticate_for_keys);
    routes.route_layer(layer).with_state(Keys { store, clock })
}

/// Who asks, and what they may.
struct Grantor(Grant);

impl<S: Send + Sync> FromRequestParts<S> for Grantor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let grant = parts.extensions.get::<Grant>().cloned();
        grant.map(Self).ok_or_else(|| {
            ApiError::Internal(anyhow::anyhow!("a route of keys is not authenticated"))
        })
    }
}

fn store_error(error: StoreError) -> ApiError {
    match error {
        StoreError::ApiKeyExists { name } => ApiError::invalid(
            "name",
            format!("{name:?} is the name of another key, which may be revoked; choose another"),
        ),
        other => ApiError::StoreUnavailable(other.into()),
    }
}

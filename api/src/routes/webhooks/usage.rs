//! `GET /api/usage`: what the caller uses of its quotas.

use axum::{Json, extract::State as StateOf};
use serde::Serialize;
use utoipa::ToSchema;

use super::{parts::Refusals, problem::store_error, state::State};
use crate::{auth::Caller, error::ApiError};

/// Bytes of a MiB.
const MIB: u64 = 1024 * 1024;

/// What the caller has, and may have.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageAnswer {
    webhooks: Quota,
    /// Addresses that its webhooks watch together, each counted once for each webhook.
    addresses: Quota,
    /// Bytes of the messages that are kept for its webhooks, those that no endpoint accepts included; beyond the limit the oldest
    /// are removed.
    stored_bytes: Quota,
}

/// One quota.
#[derive(Debug, Serialize, ToSchema)]
struct Quota {
    used: u64,
    /// Null where there is no limit.
    #[schema(required)]
    limit: Option<u64>,
}

/// What the caller uses of its quotas
#[utoipa::path(
    get,
    path = "/api/usage",
    tag = "webhooks",
    operation_id = "getUsage",
    responses(
        (status = 200, description = "What is used, and what is allowed.", body = UsageAnswer),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
) -> Result<Json<UsageAnswer>, ApiError> {
    let usage = state.store.usage(&access).await.map_err(store_error)?;
    Ok(Json(UsageAnswer {
        webhooks: Quota {
            used: usage.webhooks.into(),
            limit: Some(
                usage
                    .quotas
                    .webhooks
                    .unwrap_or(state.settings.max_webhooks)
                    .into(),
            ),
        },
        addresses: Quota {
            used: usage.addresses,
            limit: usage.quotas.addresses.map(u64::from),
        },
        stored_bytes: Quota {
            used: usage.stored_bytes,
            limit: usage.quotas.stored_mib.map(|mib| u64::from(mib) * MIB),
        },
    }))
}

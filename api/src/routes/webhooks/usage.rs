//! `GET /api/usage`: what the caller uses of its quotas.

use axum::{Json, extract::State as StateOf};
use serde::Serialize;
use sluice_store::Timestamp;
use utoipa::ToSchema;

use super::{parts::Refusals, problem::store_error, state::State};
use crate::{auth::Caller, error::ApiError};

/// What the caller has, and may have.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageAnswer {
    webhooks: Quota,
    /// Addresses that its webhooks watch together, each counted once for each webhook.
    addresses: Quota,
    /// Bytes of the messages that are kept for its webhooks, those that no endpoint accepts included; beyond the limit the oldest
    /// are removed, and nothing is created, backfilled or redelivered.
    stored_bytes: Quota,
    messages_per_second: Rate,
    /// Deliveries that are under way for its webhooks at once.
    delivery_slots: Quota,
}

/// Messages that are sent in a second, repetitions included. What is beyond the limit is kept, and sent as soon as it allows.
#[derive(Debug, Serialize, ToSchema)]
struct Rate {
    /// In the last second; null where there is no limit.
    #[schema(required)]
    used: Option<u32>,
    /// Null where there is no limit.
    #[schema(required)]
    limit: Option<u32>,
    /// Whether the limit was reached within the last ten seconds. While messages wait because of it, nothing is backfilled or
    /// redelivered.
    throttled: bool,
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
    let now = Timestamp::from(state.clock.now());
    let usage = state.store.usage(&access, now).await;
    let usage = usage.map_err(store_error)?;
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
            limit: usage.quotas.stored_bytes(),
        },
        messages_per_second: Rate {
            used: usage.messages_per_second,
            limit: usage.quotas.messages_per_second,
            throttled: usage.throttled,
        },
        delivery_slots: Quota {
            used: usage.delivery_slots.into(),
            limit: usage.quotas.delivery_slots.map(u64::from),
        },
    }))
}

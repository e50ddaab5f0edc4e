//! Problems of the webhook routes: unknown identifiers, and what the store refuses.

use sluice_store::{StoreError, WebhookId};

use crate::{error::ApiError, extract::echoed};

/// What cannot be an identifier names no webhook, just as an identifier that was never given.
pub(super) fn parse_id(text: &str) -> Result<WebhookId, ApiError> {
    WebhookId::parse(text).map_err(|_| not_found(text))
}

pub(super) fn not_found(id: &str) -> ApiError {
    missing("webhook", id)
}

/// What the store has of the webhook that a request named by `id`, or the problem of this request.
pub(super) fn found<T>(result: Result<Option<T>, StoreError>, id: &str) -> Result<T, ApiError> {
    result.map_err(store_error)?.ok_or_else(|| not_found(id))
}

pub(super) fn missing(what: &'static str, id: &str) -> ApiError {
    ApiError::NotFound {
        what,
        id: echoed(id),
    }
}

pub(super) fn store_error(error: StoreError) -> ApiError {
    match error {
        StoreError::TooManyWebhooks { limit } => ApiError::TooManyWebhooks { limit },
        StoreError::AddressQuota { count, limit } => ApiError::AddressQuota { count, limit },
        StoreError::StoredQuota { bytes, limit } => ApiError::StoredQuota { bytes, limit },
        StoreError::MessageRate { limit, wait } => ApiError::MessageRate {
            limit,
            retry_after_secs: wait.as_secs(),
        },
        StoreError::IdempotencyKeyReused { webhook } => ApiError::IdempotencyKeyReused { webhook },
        StoreError::BackfillPending => ApiError::BackfillPending,
        StoreError::VersionConflict { current } => ApiError::VersionConflict { current },
        StoreError::TooManyAddresses { what, count, limit } => ApiError::invalid(
            what,
            format!("would make {count}, but at most {limit} are allowed; use several webhooks"),
        ),
        StoreError::TooManySecrets { limit, until } => ApiError::invalid(
            "overlapSeconds",
            format!(
                "would let more than {limit} secrets sign beside the new one; wait until {until}, when the first of \
                 them ends, or give 0, which ends all of them now"
            ),
        ),
        StoreError::MatchesNothing => ApiError::invalid(
            "filters",
            "would match nothing any more; switch the webhook off (active: false) or delete it",
        ),
        // Revoked since the request was let in.
        StoreError::NoSuchApiKey { .. } => ApiError::Unauthorized {
            fault: "this API key does not exist, was revoked or has expired",
            with_key: true,
        },
        other => ApiError::StoreUnavailable(other.into()),
    }
}

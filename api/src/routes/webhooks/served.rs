//! Served filters: refuses a webhook with more addresses than the stream's servers serve.
//!
//! The indexer finds that out and shares it through the store, as far as it is known: this process has no stream.

use std::collections::HashSet;

use sluice_store::{Access, EventKinds, Filters, WebhookDefinition};
use solana_pubkey::Pubkey;

use super::{problem::store_error, state::State};
use crate::error::ApiError;

/// Checks a definition that is to be written.
///
/// # Errors
/// [`ApiError::NotServed`], or a failure of the database.
pub(super) async fn check(state: &State, definition: &WebhookDefinition) -> Result<(), ApiError> {
    let filters = &definition.filters;
    check_counts(
        state,
        definition.events,
        [
            filters.accounts.len(),
            filters.programs.len(),
            filters.token_owners.len(),
        ],
    )
    .await
}

/// Checks addresses that are to be added to a webhook.
///
/// # Errors
/// As [`check`]; [`ApiError::NotFound`].
pub(super) async fn check_added(
    state: &State,
    access: &Access,
    id: &str,
    add: &Filters,
) -> Result<(), ApiError> {
    let before = state.webhook(access, id).await?.definition;
    let union = |before: &[Pubkey], add: &[Pubkey]| {
        let all: HashSet<&Pubkey> = before.iter().chain(add).collect();
        all.len()
    };
    let counts = [
        union(&before.filters.accounts, &add.accounts),
        union(&before.filters.programs, &add.programs),
        union(&before.filters.token_owners, &add.token_owners),
    ];
    if add.count() > 0 {
        check_counts(state, before.events, counts).await?;
    }
    Ok(())
}

/// Checks how many accounts, programs and token owners a webhook with these events would have.
///
/// # Errors
/// As [`check`].
async fn check_counts(
    state: &State,
    events: EventKinds,
    counts: [usize; 3],
) -> Result<(), ApiError> {
    let limits = state.store.address_limits().await.map_err(store_error)?;
    let fields = [
        "filters.accounts",
        "filters.programs",
        "filters.tokenOwners",
    ];
    let limits = limits.of_webhook(events);
    for ((field, count), limit) in fields.into_iter().zip(counts).zip(limits) {
        if let Some(limit) = limit
            && u64::try_from(count).is_ok_and(|count| count > limit)
        {
            return Err(ApiError::NotServed {
                field,
                count,
                limit,
            });
        }
    }
    Ok(())
}

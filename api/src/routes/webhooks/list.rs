//! `GET /api/webhooks`: lists the caller's webhooks in order of creation.

use axum::{
    Json,
    extract::{RawQuery, State as StateOf},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    paging::{self, PageSize},
    parts::Refusals,
    problem::store_error,
    state::State,
    view::WebhookView,
};
use crate::{auth::Caller, error::ApiError, extract::QueryMap};

const PAGE: PageSize = PageSize {
    default: 20,
    most: 100,
};

/// A page ends when its webhooks name so many addresses, however few they are: 10 MB of text.
const PAGE_ADDRESSES: usize = 200_000;

/// Webhooks read from the database at once, for the same reason.
const CHUNK: u32 = 5;

/// A page of webhooks.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookPage)]
pub(super) struct Page {
    webhooks: Vec<WebhookView>,
    /// Opaque; null on the last page.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// A page of webhooks, in order of creation
#[utoipa::path(
    get,
    path = "/api/webhooks",
    tag = "webhooks",
    operation_id = "listWebhooks",
    params(("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Default 20. A page of large ones may hold fewer."), ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before.")),
    responses(
        (status = 200, description = "The page.", body = Page),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    RawQuery(query): RawQuery,
) -> Result<Json<Page>, ApiError> {
    let query = QueryMap::parse(query.as_deref().unwrap_or_default(), &["limit", "cursor"])?;
    let (mut left, mut after) = (PAGE.of(&query)?, paging::cursor(&query)?);
    let (mut webhooks, mut addresses) = (Vec::new(), 0_usize);
    while left > 0 && addresses < PAGE_ADDRESSES {
        let asked = left.min(CHUNK);
        let chunk = state.store.list_webhooks(&access, after, asked).await;
        let chunk = chunk.map_err(store_error)?;
        left -= asked;
        after = chunk.next;
        for webhook in chunk.webhooks {
            let filters = &webhook.definition.filters;
            addresses += filters.count();
            let view = WebhookView::of(&state.store, webhook).await;
            webhooks.push(view.map_err(store_error)?);
        }
        if after.is_none() {
            break;
        }
    }
    Ok(Json(Page {
        webhooks,
        next_cursor: after.map(|position| position.to_string()),
    }))
}

//! `GET /api/webhooks`

use axum::{
    Json,
    extract::{RawQuery, State as StateOf},
};
use serde::Serialize;

use super::{State, store_error, view::WebhookView};
use crate::{error::ApiError, extract::QueryMap};

/// Webhooks on a page when the caller does not say.
const DEFAULT_LIMIT: u32 = 20;

/// Most webhooks on a page. A webhook may hold 100,000 accounts, so a page may be large even so.
const MAX_LIMIT: u32 = 100;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page {
    webhooks: Vec<WebhookView>,
    /// Opaque; null on the last page.
    next_cursor: Option<String>,
}

/// Webhooks in order of creation, a page at a time.
pub(super) async fn handler(
    StateOf(state): StateOf<State>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page>, ApiError> {
    let query = QueryMap::parse(query.as_deref().unwrap_or_default(), &["limit", "cursor"])?;
    let limit = query.get("limit").map_or(Ok(DEFAULT_LIMIT), parse_limit)?;
    let after = query.get("cursor").map(parse_cursor).transpose()?;
    let page = state
        .store
        .list_webhooks(after, limit)
        .await
        .map_err(store_error)?;
    Ok(Json(Page {
        webhooks: page.webhooks.into_iter().map(WebhookView::from).collect(),
        next_cursor: page.next.map(|position| position.to_string()),
    }))
}

fn parse_limit(text: &str) -> Result<u32, ApiError> {
    let limit = text
        .parse()
        .ok()
        .filter(|limit| (1..=MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| {
        ApiError::invalid("limit", format!("must be an integer from 1 to {MAX_LIMIT}"))
    })
}

fn parse_cursor(text: &str) -> Result<i64, ApiError> {
    let position = text.parse().ok().filter(|position| *position >= 0);
    position.ok_or_else(|| ApiError::invalid("cursor", "must be the nextCursor of an earlier page"))
}

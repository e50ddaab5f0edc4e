//! `GET /v1/pools`: the pools, of one mint or of all, page by page.

use axum::{
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use sluice_market::QuoteCommitment;
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use super::{page::page, wire::Pool};
use crate::{
    answer,
    error::{ApiError, ProblemBody},
    extract::{Address, QueryMap, parse_pubkey},
    state::AppState,
};

/// Every parameter of this endpoint.
const PARAMETERS: [&str; 3] = ["mint", "limit", "cursor"];

/// Pools on a page when the caller names no limit.
const DEFAULT_LIMIT: usize = 50;

/// Most pools on a page: an answer of some 80 kB.
const MOST: usize = 100;

/// Room for a pool in an answer, bytes.
const ROOM: usize = 1_024;

/// A page of pools and the slot that they were read at.
#[derive(Debug, Serialize, ToSchema)]
pub struct PoolsResponse {
    /// Slot whose end this is. The next page is of a later one.
    slot: u64,
    /// In the order of their addresses.
    pools: Vec<Pool>,
    /// What to ask with for the next page; null where this is the last.
    #[schema(required)]
    cursor: Option<Address>,
}

impl IntoResponse for PoolsResponse {
    fn into_response(self) -> Response {
        let room = self.pools.len().saturating_add(1).saturating_mul(ROOM);
        answer::json(&self, room)
    }
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    mint: Option<Pubkey>,
    limit: usize,
    cursor: Option<Pubkey>,
}

/// Pools, page by page
///
/// Those that trade `mint`, or all, in the order of their addresses, as of the newest complete slot. A pool that opens or
/// closes meanwhile is on a later page or not, and none is on two.
#[utoipa::path(
    get,
    path = "/v1/pools",
    tag = "pools",
    operation_id = "listPools",
    params(
        ("mint" = Option<Address>, Query, description = "A mint that they trade. Default any."),
        ("limit" = Option<u8>, Query, minimum = 1, maximum = 100, description = "Pools on a page. Default 50."),
        ("cursor" = Option<Address>, Query, description = "The `cursor` of the page before."),
    ),
    responses(
        (status = 200, description = "The page.", body = PoolsResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn list(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<PoolsResponse, ApiError> {
    let wanted = parse(query.as_deref().unwrap_or_default())?;
    let view = state.market().view(QuoteCommitment::Processed)?;
    let cursor = wanted.cursor.as_ref();
    let found = match &wanted.mint {
        Some(mint) => page(view.addresses_of(mint), cursor, wanted.limit),
        None => page(view.addresses(), cursor, wanted.limit),
    };
    let last = found.addresses.last().filter(|_| found.has_more);
    let pools = found.addresses.iter();
    Ok(PoolsResponse {
        slot: view.slot().get(),
        cursor: last.map(Address::new),
        pools: pools
            .filter_map(|address| view.pool(address))
            .map(|pool| Pool::new(&pool))
            .collect(),
    })
}

fn parse(query: &str) -> Result<Wanted, ApiError> {
    let query = QueryMap::parse(query, &PARAMETERS)?;
    let address = |name: &'static str| {
        let text = query.get(name);
        text.map(|text| parse_pubkey(name, text)).transpose()
    };
    let limit = match query.get("limit") {
        None => DEFAULT_LIMIT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|limit| (1..=MOST).contains(limit))
            .ok_or_else(|| ApiError::invalid("limit", "must be 1 to 100"))?,
    };
    Ok(Wanted {
        mint: address("mint")?,
        limit,
        cursor: address("cursor")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_need_be_said_and_nothing_wrong_is_taken() {
        let all = parse("").expect("no parameter");
        assert_eq!((all.mint, all.limit, all.cursor), (None, 50, None));
        assert_eq!(
            parse("limit=100").map(|wanted| wanted.limit).ok(),
            Some(100)
        );
        for wrong in ["limit=0", "limit=101", "limit=x", "mint=0", "cursor=me"] {
            assert_eq!(parse(wrong).expect_err(wrong).code(), "invalid_field");
        }
        assert_eq!(
            parse("mints=1").expect_err("misspelt").code(),
            "unknown_field"
        );
    }
}

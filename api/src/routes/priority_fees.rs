//! `GET /v1/priority-fees`: prices at which transactions landed lately in the accounts of a pool, as levels.

use axum::{
    Json,
    extract::{RawQuery, State},
};
use serde::Serialize;
use sluice_market::QuoteCommitment;
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use crate::{
    error::{ApiError, ProblemBody},
    extract::{Address, Digits, Pools, PoolsText, QueryMap},
    rpc::SlotPrice,
    state::AppState,
};

/// Every parameter of this endpoint.
const PARAMETERS: [&str; 1] = ["pool"];

/// The levels: how many of a hundred slots would have taken a transaction at that price.
const PERCENTILES: [u8; 6] = [25, 50, 75, 90, 95, 100];

/// What priority cost lately.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriorityFeesResponse {
    pool: PoolsText,
    /// The accounts that a swap writes there: transactions that write one of them compete with it.
    accounts: Vec<Address>,
    /// The newest slot that this is about; null where the node knows of none.
    #[schema(required)]
    slot: Option<u64>,
    /// How many slots it is about, at most 150.
    slots: usize,
    /// Prices from low to high; empty where the node knows of no slot.
    levels: Vec<PriorityFeeLevel>,
}

/// A price of a compute unit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PriorityFeeLevel {
    /// Of a hundred slots, in how many a transaction with this price was no dearer than the cheapest that landed.
    percentile: u8,
    /// The price. `priorityFeeLamports` for it is `ceil(price × computeUnitLimit / 1,000,000)`.
    unit_price_micro_lamports: u64,
    unit_price_micro_lamports_string: Digits,
}

/// What priority costs in a pool
///
/// The lowest price of a compute unit at which a transaction that writes the pool's accounts landed, in each of the node's last
/// slots, as levels. A slot in which nothing wrote them counts with the cheapest of its block. Repeated for two seconds.
#[utoipa::path(
    get,
    path = "/v1/priority-fees",
    tag = "pools",
    operation_id = "getPriorityFees",
    params(("pool" = PoolsText, Query, description = "The pool; of two hops both, joined by a comma.")),
    responses(
        (status = 200, description = "The levels.", body = PriorityFeesResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn get(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<Json<PriorityFeesResponse>, ApiError> {
    let query = QueryMap::parse(query.as_deref().unwrap_or_default(), &PARAMETERS)?;
    let pools = Pools::parse("pool", query.require("pool")?)?;
    let accounts = written(&state, pools)?;
    let prices = state.rpc().recent_prices(pools, &accounts).await?;
    Ok(Json(PriorityFeesResponse {
        pool: pools.text(),
        accounts: accounts.iter().map(Address::new).collect(),
        slot: prices.iter().map(|price| price.slot).max(),
        slots: prices.len(),
        levels: levels(&prices),
    }))
}

/// The accounts of the pools that every swap through them writes.
fn written(state: &AppState, pools: Pools) -> Result<Vec<Pubkey>, ApiError> {
    let view = state.market().view(QuoteCommitment::Processed)?;
    let addresses = match pools {
        Pools::One(pool) => vec![pool],
        Pools::Two(first, second) => vec![first, second],
    };
    let mut accounts = Vec::new();
    for address in addresses {
        let found = view.pool(&address).ok_or_else(|| ApiError::NotFound {
            what: "pool of the exchange at",
            id: address.to_string(),
        })?;
        let pool = &found.snapshot.pool;
        let vaults = [pool.vaults.token_0, pool.vaults.token_1];
        accounts.extend([address, pool.observation]);
        accounts.extend(vaults);
    }
    Ok(accounts)
}

/// By nearest rank: the lowest price that is at least that of so many slots.
fn levels(prices: &[SlotPrice]) -> Vec<PriorityFeeLevel> {
    let mut sorted: Vec<u64> = prices.iter().map(|price| price.unit_price).collect();
    sorted.sort_unstable();
    let level = |percentile: u8| {
        let rank = sorted
            .len()
            .saturating_mul(usize::from(percentile))
            .div_ceil(100);
        let price = *sorted.get(rank.checked_sub(1)?)?;
        Some(PriorityFeeLevel {
            percentile,
            unit_price_micro_lamports: price,
            unit_price_micro_lamports_string: Digits(price),
        })
    };
    PERCENTILES.into_iter().filter_map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_the_price_that_so_many_slots_would_have_taken() {
        let of = |prices: &[u64]| -> Vec<u64> {
            let prices: Vec<_> = (1..)
                .zip(prices)
                .map(|(slot, unit_price)| SlotPrice {
                    slot,
                    unit_price: *unit_price,
                })
                .collect();
            let levels = levels(&prices);
            levels
                .iter()
                .map(|level| level.unit_price_micro_lamports)
                .collect()
        };
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(of(&hundred), [25, 50, 75, 90, 95, 100]);
        assert_eq!(of(&[7]), [7; 6]);
        assert_eq!(of(&[0, 9, 0, 0]), [0, 0, 0, 9, 9, 9]);
        assert!(of(&[]).is_empty());
    }
}

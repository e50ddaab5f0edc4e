//! Quotes against executed swaps: mainnet events, and 3,000 swaps of the official program.
//!
//! The program was compiled to SBF; its refusals are included.

use std::sync::Arc;

use cpmm::{
    AmmConfig, Amount, Clock, Direction, FeeRate, Mint, PerToken, PoolSnapshot, Refusal,
    fixtures::{ExecutedSwap, Outcome, blank_pool, executed_swaps, published_config},
};
use serde::Deserialize;

const MAINNET: &str = include_str!("data/cpmm-mainnet.json");

#[test]
fn executed_swaps_are_quoted_to_the_unit_and_refused_with_the_same_code() {
    let swaps = executed_swaps();
    assert_eq!(swaps.len(), 3_000);
    let wrong: Vec<String> = swaps
        .iter()
        .enumerate()
        .filter(|(_, swap)| predict(swap).as_ref() != Some(&swap.result))
        .map(|(index, swap)| {
            format!(
                "{index}: ours {:?}, chain's {:?}",
                predict(swap),
                swap.result
            )
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// What the arithmetic says the program did.
fn predict(swap: &ExecutedSwap) -> Option<Outcome> {
    let (state, direction, clock) = (swap.snapshot(), swap.direction(), swap.clock());
    let quote = state.quote_exact_in(direction, Amount::new(swap.amount_in), &clock);
    Outcome::predicted(&state, direction, quote, swap.minimum_amount_out)
}

fn number(text: &str) -> Amount {
    Amount::new(text.parse().expect("amounts are decimal strings"))
}

fn pool_of(reserves: PerToken<Amount>, trade_fee_rate: u64) -> PoolSnapshot {
    PoolSnapshot {
        pool: Arc::new(blank_pool()),
        config: Arc::new(AmmConfig {
            trade_fee_rate: FeeRate(trade_fee_rate),
            ..published_config()
        }),
        vault_amounts: reserves,
        vaults_frozen: false,
        mints: PerToken::new(
            Arc::new(Mint::plain(6, u64::MAX)),
            Arc::new(Mint::plain(6, u64::MAX)),
        ),
    }
}

#[derive(Deserialize)]
struct Mainnet {
    vectors: Vec<MainnetVector>,
}

#[derive(Deserialize)]
struct MainnetVector {
    name: String,
    reserve_in: String,
    reserve_out: String,
    amount_in_net: String,
    trade_fee_rate: String,
    trade_fee: String,
    out_gross: String,
}

#[test]
fn mainnet_events_are_reproduced() {
    let mainnet: Mainnet = serde_json::from_str(MAINNET).expect("test data");
    assert_eq!(mainnet.vectors.len(), 4);
    for vector in &mainnet.vectors {
        let reserves = PerToken::new(number(&vector.reserve_in), number(&vector.reserve_out));
        let quote = pool_of(reserves, number(&vector.trade_fee_rate).get())
            .quote_exact_in(
                Direction::ZeroForOne,
                number(&vector.amount_in_net),
                &Clock::default(),
            )
            .expect("executed on mainnet");
        assert_eq!(
            quote.amount_out,
            number(&vector.out_gross),
            "{}",
            vector.name
        );
        assert_eq!(
            quote.trade_fee,
            number(&vector.trade_fee),
            "{}",
            vector.name
        );
    }
}

#[test]
fn a_pool_that_opens_later_says_when() {
    let mut state = pool_of(PerToken::new(Amount::new(1_000), Amount::new(1_000)), 2_500);
    Arc::make_mut(&mut state.pool).open_time = 100;
    let at = |unix_timestamp| {
        state.quote_exact_in(
            Direction::ZeroForOne,
            Amount::new(100),
            &Clock {
                epoch: 0,
                unix_timestamp,
            },
        )
    };
    assert_eq!(at(99), Err(Refusal::NotOpenYet { open_time: 100 }));
    assert!(at(100).is_ok());
}

/// Every executed swap asked the other way round: sending what its output is said to cost delivers at
/// least that output. There is no bound above: where one unit of output is worth many of input, every
/// rounding in the pool's favour costs that many.
#[test]
fn what_an_exact_output_costs_is_enough() {
    let mut answered = 0;
    for swap in executed_swaps() {
        let (state, direction, clock) = (swap.snapshot(), swap.direction(), swap.clock());
        let Ok(forward) = state.quote_exact_in(direction, Amount::new(swap.amount_in), &clock)
        else {
            continue;
        };
        let Ok(cost) = state.quote_exact_out(direction, forward.received, &clock) else {
            continue;
        };
        answered += 1;
        let paid = state
            .quote_exact_in(direction, cost.amount_in, &clock)
            .expect("a cost can be sent");
        assert!(
            paid.received >= forward.received,
            "{swap:?}: {cost:?}, {paid:?}"
        );
    }
    assert!(answered > 1_500, "only {answered} swaps have an exact cost");
}

#[test]
fn an_exact_output_costs_what_the_formulas_say() {
    let state = pool_of(
        PerToken::new(Amount::new(1_000_000), Amount::new(2_000_000)),
        2_500,
    );
    let cost = state
        .quote_exact_out(Direction::ZeroForOne, Amount::new(1_000), &Clock::default())
        .expect("the pool is deep enough");
    // 1,000,000 × 1,000 / (2,000,000 − 1,000), rounded up, and that before a fee of 0.25 %, rounded up.
    assert_eq!(
        (cost.curve_in, cost.amount_in, cost.trade_fee),
        (Amount::new(501), Amount::new(503), Amount::new(2))
    );
    assert_eq!(
        state.quote_exact_out(
            Direction::ZeroForOne,
            Amount::new(2_000_000),
            &Clock::default()
        ),
        Err(Refusal::InsufficientReserves)
    );
}

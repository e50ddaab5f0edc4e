//! Quotes against executed swaps: mainnet events, and 3,000 swaps of the official program.
//!
//! The program was compiled to SBF; its refusals are included.

use std::sync::Arc;

use cpmm::{
    AmmConfig, Amount, Clock, Direction, FeeRate, Hop, HopRefusal, Mint, PerToken, PoolSnapshot,
    PoolState, Refusal, TransferFee, TransferFeeConfig,
    fixtures::{ExecutedSwap, Outcome, blank_pool, executed_swaps, published_config},
    quote_two_hops_exact_in, quote_two_hops_exact_out,
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

/// What the official program was seen to take for 1,234,567 units out of a pool of 10^12 and 5·10^12, with transfer fees
/// of the whole amount on either side, up to a cap: `(cap, spent)`.
const EXECUTED_WITH_WHOLE_FEE: [(u64, u64); 3] =
    [(0, 247_533), (7, 247_540), (1_000_000_000, 1_000_247_533)];

#[test]
fn an_exact_output_costs_what_the_official_program_took() {
    let received = Amount::new(1_234_567);
    let reserves = PerToken::new(
        Amount::new(1_000_000_000_000),
        Amount::new(5_000_000_000_000),
    );
    let quote = |state: &PoolSnapshot| {
        state.quote_exact_out(Direction::ZeroForOne, received, &Clock::default())
    };
    let plain = pool_of(reserves, 2_500);
    let cost = quote(&plain).expect("the pool is deep enough").amount_in;
    assert_eq!(cost, Amount::new(247_533));
    let forward = plain
        .quote_exact_in(Direction::ZeroForOne, cost, &Clock::default())
        .expect("it can be sent");
    // An exact output leaves in the pool what rounding the input up bought.
    assert_eq!(forward.received, Amount::new(1_234_569));

    for (cap, spent) in EXECUTED_WITH_WHOLE_FEE {
        let mut state = pool_of(reserves, 2_500);
        state.mints.token_0 = Arc::new(whole_fee(cap));
        let cost = quote(&state).expect("the cap bounds the fee");
        assert_eq!(cost.amount_in, Amount::new(spent), "cap {cap}");
    }
    let mut uncapped = pool_of(reserves, 2_500);
    uncapped.mints.token_1 = Arc::new(whole_fee(u64::MAX));
    assert_eq!(quote(&uncapped), Err(Refusal::Overflow));
}

fn whole_fee(maximum_fee: u64) -> Mint {
    let fee = TransferFee {
        epoch: 0,
        maximum_fee,
        basis_points: 10_000,
    };
    Mint {
        transfer_fee: Some(TransferFeeConfig {
            older: fee,
            newer: fee,
        }),
        ..Mint::plain(6, u64::MAX)
    }
}

#[test]
fn the_second_hop_is_fed_with_what_the_first_delivers() {
    let [first, second] = [(10, 20), (40, 80)].map(|(x, y)| {
        let reserve = |millions: u64| Amount::new(millions * 1_000_000);
        pool_of(PerToken::new(reserve(x), reserve(y)), 2_500)
    });
    let closed = PoolSnapshot {
        pool: Arc::new(PoolState {
            status: 4,
            ..blank_pool()
        }),
        ..second.clone()
    };
    let hop = |pool| Hop {
        pool,
        direction: Direction::ZeroForOne,
    };
    let clock = Clock::default();
    let amount_in = Amount::new(1_000);
    assert_eq!(
        quote_two_hops_exact_in([hop(&first), hop(&closed)], amount_in, &clock),
        Err(HopRefusal::Second(Refusal::SwapDisabled))
    );
    let hops = [hop(&first), hop(&second)];
    let quote = quote_two_hops_exact_in(hops, amount_in, &clock).expect("both pools are open");
    assert_eq!(quote.second.amount_in, quote.first.received);

    let cost = quote_two_hops_exact_out(hops, quote.second.received, &clock).expect("it was paid");
    assert_eq!(cost.first.received, cost.second.amount_in);
    assert!(cost.first.amount_in <= amount_in, "the least that pays it");
}

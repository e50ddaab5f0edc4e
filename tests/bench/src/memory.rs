//! Cost of quotes in memory, without a network.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use cpmm::{Amount, Direction};
use sluice_api::pricing::{Ask, SwapMode, best_route};
use sluice_geyser::{Body, SlotStatus, SlotUpdate, Update};
use sluice_market::{Market, QuoteCommitment, replay::Replay};
use sluice_testkit::{
    figure::{Figure, Limit},
    population::{Population, clock},
    updates::written,
};
use solana_pubkey::Pubkey;

/// Pools of one pair that compete.
const COMPETING: u64 = 16;

/// Pools of a whole exchange.
const POOLS: u64 = 200_000;

/// Tokens between which two hops are tried, spread over all pools.
const TRIED: u64 = 4_096;

/// Middles of a pair that has many: SOL and the larger stablecoins are fewer.
const MIDDLES: u64 = 16;

/// One measurement: long enough for the clock, short enough that many fit between two interruptions.
const ROUND: Duration = Duration::from_millis(20);

/// Measurements of which the best counts: the others were interrupted by something else on the machine.
const ROUNDS: u32 = 50;

/// Slot in which synthetic chains begin.
const SLOT: u64 = 1_000;

/// What quotes cost in memory.
///
/// # Panics
/// When a quote is refused, which would be measured as a very fast one.
#[must_use]
pub fn figures() -> Vec<Figure> {
    let chain = Population {
        pools: COMPETING,
        per_pair: COMPETING,
        quote_tokens: 1,
    };
    let market = market(chain);
    let mints = chain.mints(0);
    let ask = Ask {
        input_mint: mints.token_0,
        output_mint: mints.token_1,
        amount: Amount::new(1_000_000),
        mode: SwapMode::ExactIn,
        platform_rate: None,
        pools: None,
        two_hops: false,
        before_opening: false,
        max_price_impact: None,
        commitment: QuoteCommitment::Processed,
    };
    let view = market
        .view(QuoteCommitment::Processed)
        .expect("it was begun");
    let pool = view.pool(&chain.pool(0)).expect("it is in the chain");
    let one = nanoseconds(|amount| {
        let quote =
            pool.snapshot
                .quote_exact_in(Direction::ZeroForOne, Amount::new(amount), &pool.clock);
        assert!(black_box(quote).is_ok());
    });
    let best = nanoseconds(|amount| {
        let ask = Ask {
            amount: Amount::new(amount),
            ..ask
        };
        let priced = best_route(&market, &ask).expect("sixteen pools pay");
        assert_eq!(black_box(priced).alternatives.len(), 15);
    });
    vec![
        Figure::new(
            "quote of one pool in memory",
            one,
            "ns",
            Limit::AtMost(150.0),
        ),
        Figure::new("best of 16 pools", best / 1_000.0, "us", Limit::AtMost(3.0)),
        Figure::new(
            "two-hop best among 200,000 pools",
            two_hops(1) / 1_000.0,
            "us",
            Limit::AtMost(50.0),
        ),
        Figure::new(
            "two-hop best of 16 middles among 200,000 pools",
            two_hops(MIDDLES) / 1_000.0,
            "us",
            Limit::AtMost(50.0),
        ),
    ]
}

/// A swap between two tokens of which each has a pool with each of so many quote tokens, and none with the other.
fn two_hops(quote_tokens: u64) -> f64 {
    let chain = Population {
        pools: POOLS,
        per_pair: 1,
        quote_tokens,
    };
    let market = market(chain);
    let own: Vec<Pubkey> = (0..TRIED)
        .map(|number| chain.token(number * (POOLS / TRIED)))
        .collect();
    let of = |number: usize| own[number % own.len()];
    nanoseconds(|amount| {
        let number = usize::try_from(amount).expect("a small number");
        let ask = Ask {
            input_mint: of(number),
            output_mint: of(number * 7 + 1),
            amount: Amount::new(amount),
            mode: SwapMode::ExactIn,
            platform_rate: None,
            pools: None,
            two_hops: true,
            before_opening: false,
            max_price_impact: None,
            commitment: QuoteCommitment::Processed,
        };
        let priced = best_route(&market, &ask).expect("two pools pay");
        assert!(black_box(priced).second.is_some());
    })
}

/// A market that shows this chain.
///
/// # Panics
/// When it does not.
#[must_use]
pub fn market(chain: Population) -> Market {
    let mut replay = Replay::begin(SLOT, chain.accounts(SLOT));
    let update = |body| Update {
        filters: Vec::new(),
        created_at: None,
        bank_id: None,
        body,
    };
    let clock = written(SLOT, 1, clock(SLOT));
    let sealed = SlotUpdate {
        slot: SLOT,
        parent: Some(SLOT - 1),
        status: SlotStatus::Processed,
        dead_error: None,
    };
    for body in [Body::Account(clock), Body::Slot(sealed)] {
        replay.update(&update(body)).expect("the slot is the first");
    }
    replay.market().clone()
}

/// Time of one call, the best of many rounds. Every call gets another amount.
fn nanoseconds(call: impl Fn(u64)) -> f64 {
    let round = || {
        let (begun, mut calls) = (Instant::now(), 0_u32);
        while begun.elapsed() < ROUND {
            // Reading the clock costs as much as a quote.
            for amount in 0..256 {
                call(black_box(1_000_000 + amount));
            }
            calls += 256;
        }
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

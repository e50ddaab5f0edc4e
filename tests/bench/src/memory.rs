//! Cost of quotes in memory, without a network.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use cpmm::{Amount, Direction};
use sluice_api::pricing::{Ask, best_pool};
use sluice_geyser::{Body, SlotStatus, SlotUpdate, Update};
use sluice_market::{Market, QuoteCommitment, replay::Replay};
use sluice_testkit::{
    figure::{Figure, Limit},
    population::{Population, clock},
    updates::written,
};

/// Pools of one pair that compete.
const COMPETING: u64 = 16;

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
    };
    let market = market(chain);
    let mints = chain.mints(0);
    let ask = Ask {
        input_mint: mints.token_0,
        output_mint: mints.token_1,
        amount_in: Amount::new(1_000_000),
        pool: None,
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
            amount_in: Amount::new(amount),
            ..ask
        };
        let priced = best_pool(&market, &ask).expect("sixteen pools pay");
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
    ]
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

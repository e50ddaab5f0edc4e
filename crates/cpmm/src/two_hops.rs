//! Two-hop quote: through two pools that have a token in common, the second fed with what the first delivers.

use thiserror::Error;

use crate::{
    exact_out::ExactOutQuote,
    quote::{Clock, Direction, ExactInQuote, PoolSnapshot},
    refusal::Refusal,
    units::Amount,
};

/// One pool of a route, and the way through it.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    /// The pool.
    pub pool: &'a PoolSnapshot,
    /// Which of its tokens goes in.
    pub direction: Direction,
}

/// The quotes of both hops, in the order of the swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoHopQuote<Quote> {
    /// From the input to the middle token.
    pub first: Quote,
    /// From the middle to the output token.
    pub second: Quote,
}

/// Which hop could not be quoted, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HopRefusal {
    /// The first.
    #[error("first hop: {0}")]
    First(Refusal),
    /// The second.
    #[error("second hop: {0}")]
    Second(Refusal),
}

/// What swapping exactly `amount_in` through both pools pays at `clock`: the second hop is offered what the first
/// delivers to the user's middle account, after the middle mint's transfer fee, to the unit.
///
/// The pools must be two: a swap changes the pool that it goes through.
///
/// # Errors
/// The [`Refusal`] with which the chain would end the swap.
pub fn quote_two_hops_exact_in(
    [first, second]: [Hop<'_>; 2],
    amount_in: Amount,
    clock: &Clock,
) -> Result<TwoHopQuote<ExactInQuote>, HopRefusal> {
    let first = first
        .pool
        .quote_exact_in(first.direction, amount_in, clock)
        .map_err(HopRefusal::First)?;
    let second = second
        .pool
        .quote_exact_in(second.direction, first.received, clock)
        .map_err(HopRefusal::Second)?;
    Ok(TwoHopQuote { first, second })
}

/// What must be sent through both pools at `clock` so that at least `received` arrives: the least that delivers what the
/// second pool asks for that amount. As a swap of an exact input it may pay a few units more.
///
/// # Errors
/// The [`Refusal`] with which the chain would end the swap.
pub fn quote_two_hops_exact_out(
    [first, second]: [Hop<'_>; 2],
    received: Amount,
    clock: &Clock,
) -> Result<TwoHopQuote<ExactOutQuote>, HopRefusal> {
    let second = second
        .pool
        .quote_exact_out(second.direction, received, clock)
        .map_err(HopRefusal::Second)?;
    let first = first
        .pool
        .quote_exact_out(first.direction, second.amount_in, clock)
        .map_err(HopRefusal::First)?;
    Ok(TwoHopQuote { first, second })
}

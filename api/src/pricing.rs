//! Which pool pays most for an amount, and what stands against the others.

use cpmm::{Amount, Direction, ExactInQuote, PoolSnapshot, Refusal};
use sluice_market::{Market, PoolView, QuoteCommitment, View};
use solana_pubkey::Pubkey;

use crate::error::ApiError;

/// How long a quote is meant to be used, slots: about a minute, as long as the blockhash of a transaction built at the
/// same moment lives.
pub const QUOTE_LIFETIME_SLOTS: u64 = 150;

/// What is asked of the market.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Mint that goes in.
    pub input_mint: Pubkey,
    /// Mint that comes out.
    pub output_mint: Pubkey,
    /// How much goes in.
    pub amount_in: Amount,
    /// The only pool to consider, if the caller named one.
    pub pool: Option<Pubkey>,
    /// How settled the state must be that is quoted.
    pub commitment: QuoteCommitment,
}

/// The best pool for an ask, with everything that a swap through it needs.
#[derive(Clone, Debug)]
pub struct Priced {
    /// The pool, read at one moment.
    pub view: PoolView,
    /// Which way the swap goes through it.
    pub direction: Direction,
    /// What it pays.
    pub quote: ExactInQuote,
    /// The pools that were not chosen.
    pub alternatives: Vec<Alternative>,
}

/// A pool that was not chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// Its address.
    pub pool: Pubkey,
    /// What it would have paid, or why the chain would have refused.
    pub outcome: Result<Amount, Refusal>,
}

/// Prices the ask in every pool of its two mints and picks the one that pays most; between equals, the
/// one with the smaller address, so that the answer does not depend on chance.
///
/// # Errors
/// [`ApiError::MarketNotReady`], or why no pool would execute the swap.
pub fn best_pool(market: &Market, ask: &Ask) -> Result<Priced, ApiError> {
    best_pool_of(&market.view(ask.commitment)?, ask)
}

/// [`best_pool`] at a moment that was taken before.
///
/// # Errors
/// Why no pool would execute the swap.
pub fn best_pool_of(moment: &View, ask: &Ask) -> Result<Priced, ApiError> {
    let candidates = candidates(moment, ask)?;
    let mut best: Option<(PoolView, Direction, ExactInQuote)> = None;
    let mut alternatives = Vec::new();
    for view in candidates {
        let Some(direction) = direction(&view.snapshot, ask) else {
            continue;
        };
        let outcome = view
            .snapshot
            .quote_exact_in(direction, ask.amount_in, &view.clock);
        let pays_more = |quote: &ExactInQuote| {
            best.as_ref()
                .is_none_or(|(_, _, best)| quote.received > best.received)
        };
        match outcome {
            Ok(quote) if pays_more(&quote) => {
                if let Some((view, _, quote)) = best.replace((view, direction, quote)) {
                    alternatives.push(Alternative {
                        pool: view.address,
                        outcome: Ok(quote.received),
                    });
                }
            }
            outcome => alternatives.push(Alternative {
                pool: view.address,
                outcome: outcome.map(|quote| quote.received),
            }),
        }
    }
    match best {
        Some((view, direction, quote)) => Ok(Priced {
            view,
            direction,
            quote,
            alternatives,
        }),
        None => Err(why_none(ask, &alternatives)),
    }
}

/// The pools to consider, in the order of their addresses.
fn candidates(moment: &View, ask: &Ask) -> Result<Vec<PoolView>, ApiError> {
    let Some(pool) = ask.pool else {
        return Ok(moment
            .pools_for(&ask.input_mint, &ask.output_mint)
            .collect());
    };
    let view = moment
        .pool(&pool)
        .filter(|view| direction(&view.snapshot, ask).is_some())
        .ok_or_else(|| ApiError::UnknownPool {
            pool: pool.to_string(),
        })?;
    Ok(vec![view])
}

fn direction(snapshot: &PoolSnapshot, ask: &Ask) -> Option<Direction> {
    let mints = &snapshot.pool.mints;
    [Direction::ZeroForOne, Direction::OneForZero]
        .into_iter()
        .find(|direction| {
            direction.input(mints) == ask.input_mint && direction.output(mints) == ask.output_mint
        })
}

/// The refusal that helps most: an amount that can be raised, then a pool that will open, then
/// whatever else is wrong with the pool.
fn why_none(ask: &Ask, refused: &[Alternative]) -> ApiError {
    let with = |matches: fn(&Refusal) -> bool| {
        refused.iter().find_map(|alternative| {
            let refusal = alternative.outcome.err().filter(matches)?;
            Some((alternative.pool, refusal))
        })
    };
    if with(|refusal| matches!(refusal, Refusal::ZeroInput | Refusal::ZeroOutput)).is_some() {
        return ApiError::AmountTooSmall;
    }
    if let Some((pool, Refusal::NotOpenYet { open_time })) =
        with(|refusal| matches!(refusal, Refusal::NotOpenYet { .. }))
    {
        return ApiError::PoolNotOpen {
            pool: pool.to_string(),
            open_time,
        };
    }
    match with(|_| true) {
        Some((pool, refusal)) => ApiError::PoolNotTradable {
            pool: pool.to_string(),
            reason: refusal.to_string(),
        },
        None => ApiError::NoPool {
            input_mint: ask.input_mint.to_string(),
            output_mint: ask.output_mint.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(refusals: &[Refusal]) -> ApiError {
        let ask = Ask {
            input_mint: Pubkey::from([1; 32]),
            output_mint: Pubkey::from([2; 32]),
            amount_in: Amount::new(1),
            pool: None,
            commitment: QuoteCommitment::default(),
        };
        let alternatives: Vec<_> = refusals
            .iter()
            .map(|refusal| Alternative {
                pool: Pubkey::from([3; 32]),
                outcome: Err(*refusal),
            })
            .collect();
        why_none(&ask, &alternatives)
    }

    #[test]
    fn the_most_helpful_refusal_wins() {
        let later = Refusal::NotOpenYet { open_time: 9 };
        let dead = Refusal::SwapDisabled;
        assert_eq!(refused(&[]).code(), "no_pool");
        assert_eq!(refused(&[dead]).code(), "pool_not_tradable");
        assert_eq!(refused(&[dead, later]).code(), "pool_not_open");
        assert_eq!(
            refused(&[dead, later, Refusal::ZeroOutput]).code(),
            "amount_too_small"
        );
    }
}

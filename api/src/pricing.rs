//! Pricing: the pool that pays most for an amount, and what the other pools pay or refuse.

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
    /// Commitment of the state that is quoted.
    pub commitment: QuoteCommitment,
}

/// The best pool for an ask, with everything that a swap through it needs.
#[derive(Clone, Debug)]
pub struct Priced {
    /// The pool, as one view shows it.
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

/// Why an ask has no price.
#[derive(Debug)]
pub enum Unpriced {
    /// The named pool trades other mints, for which each route has a code of its own.
    MintMismatch {
        /// The pool's address.
        pool: Pubkey,
    },
    /// Every other reason has the same code on all routes.
    Refused(ApiError),
}

impl From<ApiError> for Unpriced {
    fn from(refusal: ApiError) -> Self {
        Self::Refused(refusal)
    }
}

/// Prices the ask in every pool of its two mints and picks the one that pays most; between equals, the
/// one with the smaller address, so that the answer does not depend on chance.
///
/// # Errors
/// [`ApiError::MarketNotReady`], or why no pool would execute the swap.
pub fn best_pool(market: &Market, ask: &Ask) -> Result<Priced, Unpriced> {
    let view = market.view(ask.commitment).map_err(ApiError::from)?;
    let candidates = candidates(&view, ask)?;
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
        None => Err(why_none(ask, &alternatives).into()),
    }
}

/// The pools to consider, in the order of their addresses.
fn candidates(view: &View, ask: &Ask) -> Result<Vec<PoolView>, Unpriced> {
    let Some(pool) = ask.pool else {
        return Ok(view.pools_for(&ask.input_mint, &ask.output_mint).collect());
    };
    let named = view.pool(&pool).ok_or_else(|| ApiError::UnknownPool {
        pool: pool.to_string(),
    })?;
    if direction(&named.snapshot, ask).is_none() {
        return Err(Unpriced::MintMismatch { pool });
    }
    Ok(vec![named])
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

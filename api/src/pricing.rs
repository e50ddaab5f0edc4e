//! Pricing: the pool, or the route of two, that serves an amount best, and what the others pay or refuse.

mod hop;
mod two_hops;

use cpmm::{Amount, BasisPoints, Clock, Direction, ExchangeIds, PoolSnapshot, Refusal};
use sluice_chain_types::Slot;
use sluice_market::{Market, PoolView, QuoteCommitment, View};
use sluice_transaction::PlatformRate;
use solana_pubkey::Pubkey;

pub use self::hop::{HopFees, HopQuote, PricedHop, SwapMode};
use crate::{error::ApiError, extract::Pools};

/// How long a quote is meant to be used, slots: as long as the blockhash of a transaction built at the same moment lives.
pub const QUOTE_LIFETIME_SLOTS: u64 = 150;

/// What is asked of the market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Mint that goes in.
    pub input_mint: Pubkey,
    /// Mint that comes out.
    pub output_mint: Pubkey,
    /// How much the user pays, a platform's fee included, or for an exact output how much comes out.
    pub amount: Amount,
    /// What of all that the user pays a platform gets, before the swap.
    pub platform_rate: Option<PlatformRate>,
    /// Which of the two it is.
    pub mode: SwapMode,
    /// The only pools to consider, if the caller named them.
    pub pools: Option<Pools>,
    /// Whether routes of two pools are considered, where none is named. Only for an exact input.
    pub two_hops: bool,
    /// Whether a named pool that opens later is priced as of its opening, for a transaction that is to be sent then.
    pub before_opening: bool,
    /// The most that the amount may move the price.
    pub max_price_impact: Option<BasisPoints>,
    /// Commitment of the state that is quoted.
    pub commitment: QuoteCommitment,
}

impl Ask {
    /// What is asked of the pools: of an exact input what a platform's fee leaves.
    fn of_pools(&self) -> Self {
        let amount = match (self.mode, self.platform_rate) {
            (SwapMode::ExactIn, Some(rate)) => Amount::new(rate.rest(self.amount.get())),
            _ => self.amount,
        };
        Self { amount, ..*self }
    }
}

/// The best route for an ask, with everything that a swap through it needs.
#[derive(Clone, Debug)]
pub struct Priced {
    /// Where the exchange is.
    pub exchange: ExchangeIds,
    /// How much the user pays, a platform's fee included, or for an exact output how much comes out.
    pub asked: Amount,
    /// What of all that the user pays a platform gets.
    pub platform_rate: Option<PlatformRate>,
    /// Its pool, or the first of two.
    pub first: PricedHop,
    /// The second of two, fed with what the first pays.
    pub second: Option<PricedHop>,
    /// The routes that were not chosen.
    pub alternatives: Vec<Alternative>,
}

impl Priced {
    /// The hop that pays the output.
    #[must_use]
    pub fn last(&self) -> &PricedHop {
        self.second.as_ref().unwrap_or(&self.first)
    }

    /// The hops in their order.
    pub fn hops(&self) -> impl Iterator<Item = &PricedHop> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// The pools in the order of the swap.
    #[must_use]
    pub fn pools(&self) -> Pools {
        let first = self.first.view.address;
        self.second.as_ref().map_or(Pools::One(first), |second| {
            Pools::Two(first, second.view.address)
        })
    }

    /// What goes into the first pool, now.
    #[must_use]
    pub const fn amount_in(&self) -> Amount {
        self.first.quote.amount_in()
    }

    /// What a platform gets of a payment.
    #[must_use]
    pub fn platform_fee(&self, paid: u64) -> Option<PlatformShare> {
        let amount = self.platform_rate?.of(paid);
        let withheld = self.first.input_token().transfer_fee.map_or(0, |fee| {
            let fee = fee.at(self.clock().epoch);
            fee.of(Amount::new(amount)).get()
        });
        Some(PlatformShare {
            amount,
            received: amount.saturating_sub(withheld),
        })
    }

    /// What the platform's fee leaves of a payment for the swap.
    #[must_use]
    pub fn rest(&self, paid: u64) -> u64 {
        self.platform_rate.map_or(paid, |rate| rate.rest(paid))
    }

    /// What the user pays so that this much is left for the swap.
    #[must_use]
    pub fn paid_for(&self, rest: u64) -> u64 {
        self.platform_rate.map_or(rest, |rate| rate.paid_for(rest))
    }

    /// What comes out, now.
    #[must_use]
    pub fn received(&self) -> Amount {
        self.last().quote.received()
    }

    /// Which amount is fixed.
    #[must_use]
    pub const fn mode(&self) -> SwapMode {
        match self.first.quote {
            HopQuote::ExactIn(_) => SwapMode::ExactIn,
            HopQuote::ExactOut(_) => SwapMode::ExactOut,
        }
    }

    /// How far the amount moves the price, fees excluded: what each hop leaves of it, multiplied; rounded down.
    #[must_use]
    pub fn price_impact(&self) -> BasisPoints {
        let whole = u32::from(BasisPoints::MAX.get());
        let left = self.hops().fold(whole, |left, hop| {
            let kept = whole.saturating_sub(u32::from(hop.quote.price_impact().get()));
            left.saturating_mul(kept).div_ceil(whole)
        });
        let impact = u16::try_from(whole.saturating_sub(left)).ok();
        impact
            .and_then(BasisPoints::new)
            .unwrap_or(BasisPoints::MAX)
    }

    /// The slot that was quoted.
    #[must_use]
    pub const fn slot(&self) -> Slot {
        self.first.view.slot
    }

    /// The chain's time in the slot.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.first.view.clock
    }
}

/// A platform's fee of one swap, smallest units of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlatformShare {
    /// What leaves the user.
    pub amount: u64,
    /// What arrives at the platform: less where the mint withholds a fee of the transfer.
    pub received: u64,
}

/// A route that was not chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// Its pools.
    pub pools: Pools,
    /// What it would have paid, or for an exact output taken; or why the chain would have refused.
    pub outcome: Result<Amount, Refusal>,
}

/// Why an ask has no price.
#[derive(Debug)]
pub enum Unpriced {
    /// The named pools trade other mints, for which each route has a code of its own.
    MintMismatch {
        /// Their addresses.
        pools: Pools,
    },
    /// Every other reason has the same code on all routes.
    Refused(ApiError),
}

impl From<ApiError> for Unpriced {
    fn from(refusal: ApiError) -> Self {
        Self::Refused(refusal)
    }
}

/// Prices the ask in every pool of its two mints, and where it is asked for through every middle, and picks the route that
/// pays most or takes least; between equals, one pool before two and the smaller address before the greater, so that the
/// answer does not depend on chance.
///
/// # Errors
/// [`ApiError::MarketNotReady`], why no pool would execute the swap, or [`ApiError::PriceImpactTooHigh`].
pub fn best_route(market: &Market, ask: &Ask) -> Result<Priced, Unpriced> {
    let priced = unbounded_route(market, ask)?;
    let impact = priced.price_impact();
    match ask.max_price_impact {
        Some(most) if impact > most => Err(ApiError::PriceImpactTooHigh {
            impact: impact.get(),
            most: most.get(),
        }
        .into()),
        _ => Ok(priced),
    }
}

fn unbounded_route(market: &Market, ask: &Ask) -> Result<Priced, Unpriced> {
    let view = market.view(ask.commitment).map_err(ApiError::from)?;
    let asked = ask.amount;
    let of_pools;
    let ask = if ask.platform_rate.is_some() {
        of_pools = ask.of_pools();
        &of_pools
    } else {
        ask
    };
    let route = match ask.pools {
        Some(Pools::One(pool)) => {
            best_pool(&view, ask, [named(&view, ask, pool)?]).map_err(Unpriced::from)
        }
        Some(Pools::Two(first, second)) => two_hops::named(&view, ask, [first, second]),
        None => {
            let direct = best_pool(
                &view,
                ask,
                view.pools_for(&ask.input_mint, &ask.output_mint),
            );
            if ask.two_hops && ask.mode == SwapMode::ExactIn {
                two_hops::best_with(&view, ask, direct).map_err(Unpriced::from)
            } else {
                direct.map_err(Unpriced::from)
            }
        }
    };
    let mut route = route?;
    route.asked = asked;
    Ok(route)
}

/// The best of these pools for the ask.
fn best_pool(
    view: &View,
    ask: &Ask,
    pools: impl IntoIterator<Item = PoolView>,
) -> Result<Priced, ApiError> {
    let exchange = view.exchange();
    let mut best: Option<PricedHop> = None;
    let mut alternatives = Vec::new();
    for view in pools {
        let Some(direction) = direction(&view.snapshot, &ask.input_mint, &ask.output_mint) else {
            continue;
        };
        let (pool, outcome) = match PricedHop::quote(view, direction, ask.mode, ask.amount) {
            Err((pool, refusal)) => (pool, Err(refusal)),
            Ok(hop) => {
                let beaten = match &best {
                    Some(known) if !hop.quote.is_better_than(&known.quote) => Some(hop),
                    _ => best.replace(hop),
                };
                let Some(beaten) = beaten else {
                    continue;
                };
                (beaten.view.address, Ok(beaten.quote.wanted()))
            }
        };
        alternatives.push(Alternative {
            pools: Pools::One(pool),
            outcome,
        });
    }
    match best {
        Some(first) => Ok(Priced {
            exchange,
            asked: ask.amount,
            platform_rate: ask.platform_rate,
            first,
            second: None,
            alternatives,
        }),
        None => Err(why_none(ask, &alternatives)),
    }
}

/// The pool that the caller named.
fn named(view: &View, ask: &Ask, pool: Pubkey) -> Result<PoolView, Unpriced> {
    let named = known(view, ask, pool)?;
    if direction(&named.snapshot, &ask.input_mint, &ask.output_mint).is_none() {
        return Err(Unpriced::MintMismatch {
            pools: Pools::One(pool),
        });
    }
    Ok(named)
}

fn known(view: &View, ask: &Ask, pool: Pubkey) -> Result<PoolView, ApiError> {
    let mut known = view.pool(&pool).ok_or_else(|| ApiError::UnknownPool {
        pool: pool.to_string(),
    })?;
    if ask.before_opening {
        let open_time = i64::try_from(known.snapshot.pool.open_time).unwrap_or(i64::MAX);
        known.clock.unix_timestamp = known.clock.unix_timestamp.max(open_time);
    }
    Ok(known)
}

/// Which way a pool trades the one mint for the other, if it does.
fn direction(snapshot: &PoolSnapshot, input: &Pubkey, output: &Pubkey) -> Option<Direction> {
    let mints = &snapshot.pool.mints;
    [Direction::ZeroForOne, Direction::OneForZero]
        .into_iter()
        .find(|direction| direction.input(mints) == *input && direction.output(mints) == *output)
}

/// The refusal that helps most: an amount that can be changed, then a pool that will open, then
/// whatever else is wrong with the pool.
fn why_none(ask: &Ask, refused: &[Alternative]) -> ApiError {
    let with = |matches: fn(&Refusal) -> bool| {
        refused.iter().find_map(|alternative| {
            let refusal = alternative.outcome.err().filter(matches)?;
            Some((alternative.pools.to_string(), refusal))
        })
    };
    if with(|refusal| matches!(refusal, Refusal::ZeroInput | Refusal::ZeroOutput)).is_some() {
        return ApiError::AmountTooSmall;
    }
    if let Some((pool, _)) = with(|refusal| matches!(refusal, Refusal::InsufficientReserves)) {
        return ApiError::AmountTooLarge { pool };
    }
    if let Some((pool, Refusal::NotOpenYet { open_time })) =
        with(|refusal| matches!(refusal, Refusal::NotOpenYet { .. }))
    {
        return ApiError::PoolNotOpen { pool, open_time };
    }
    match with(|_| true) {
        Some((pool, refusal)) => ApiError::PoolNotTradable {
            pool,
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
            amount: Amount::new(1),
            mode: SwapMode::ExactIn,
            platform_rate: None,
            pools: None,
            two_hops: false,
            before_opening: false,
            max_price_impact: None,
            commitment: QuoteCommitment::default(),
        };
        let alternatives: Vec<_> = refusals
            .iter()
            .map(|refusal| Alternative {
                pools: Pools::One(Pubkey::from([3; 32])),
                outcome: Err(*refusal),
            })
            .collect();
        why_none(&ask, &alternatives)
    }

    #[test]
    fn the_most_helpful_refusal_wins() {
        let later = Refusal::NotOpenYet { open_time: 9 };
        let dead = Refusal::SwapDisabled;
        let poor = Refusal::InsufficientReserves;
        assert_eq!(refused(&[]).code(), "no_pool");
        assert_eq!(refused(&[dead]).code(), "pool_not_tradable");
        assert_eq!(refused(&[dead, later]).code(), "pool_not_open");
        assert_eq!(refused(&[dead, later, poor]).code(), "amount_too_large");
        assert_eq!(
            refused(&[dead, later, Refusal::ZeroOutput]).code(),
            "amount_too_small"
        );
    }
}

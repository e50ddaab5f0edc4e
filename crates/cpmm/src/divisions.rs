//! Division count: the 128-bit divisions of a swap by width, on which its compute units depend (pure).
//!
//! The chain's machine divides 64 bits in one instruction. A numerator of 2^64 or more goes through a routine that the
//! compiler supplies, and what that routine costs depends on the compiler and on the divisor: see [`DivisionCount`].
//! Follows `swap_base_input` and `curve/{calculator,fees}.rs`, operand by operand.

use std::sync::Arc;

use crate::{
    quote::{Clock, Direction, ExactInQuote, PoolSnapshot},
    token::Mint,
    units::{Amount, BasisPoints, FeeRate},
};

/// Numerators from here on take the compiler's routine.
const WIDE: u128 = 1 << 64;

/// Divisors from here on take the longer way through it.
const LARGE_DIVISOR: u128 = 1 << 32;

/// What the exchange shifts a reserve by, to have a price in whole numbers.
const PRICE_SHIFT: u32 = 32;

/// One division as the exchange makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// What is divided; a rounding up is in it already.
    pub numerator: u128,
    /// By what.
    pub divisor: u128,
}

impl Division {
    const fn new(numerator: u128, divisor: u128) -> Self {
        Self { numerator, divisor }
    }

    /// Whether it takes the compiler's routine.
    #[must_use]
    pub const fn is_wide(&self) -> bool {
        self.numerator >= WIDE
    }

    /// Whether the divisor is large, too.
    #[must_use]
    pub const fn is_large(&self) -> bool {
        self.is_wide() && self.divisor >= LARGE_DIVISOR
    }
}

/// How many of a swap's divisions are wide, by their divisors. At most nine together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DivisionCount {
    /// Those with a divisor below 2^32.
    pub small: u8,
    /// Those with a divisor of 2^32 or more.
    pub large: u8,
}

impl FromIterator<Division> for DivisionCount {
    fn from_iter<I: IntoIterator<Item = Division>>(divisions: I) -> Self {
        let mut count = Self::default();
        for division in divisions.into_iter().filter(Division::is_wide) {
            let of_its_kind = if division.is_large() {
                &mut count.large
            } else {
                &mut count.small
            };
            *of_its_kind = of_its_kind.saturating_add(1);
        }
        count
    }
}

/// The divisions that depend on reserves and the curve alone: what the log of a swap shows without the rates.
pub fn curve_divisions(
    reserve_in: Amount,
    reserve_out: Amount,
    curve_in: Amount,
) -> impl Iterator<Item = Division> {
    let (reserve_in, reserve_out) = (u128::from(reserve_in), u128::from(reserve_out));
    let curve_in = u128::from(curve_in);
    let price = |above: u128, below: u128| Division::new(above << PRICE_SHIFT, below);
    [
        price(reserve_out, reserve_in),
        price(reserve_in, reserve_out),
        Division::new(
            curve_in.saturating_mul(reserve_out),
            reserve_in.saturating_add(curve_in),
        ),
    ]
    .into_iter()
}

impl PoolSnapshot {
    /// Every division of the swap that `quote`, made of this snapshot, stands for. A rate of zero still divides; a
    /// transfer fee of zero basis points does not.
    pub fn divisions(
        &self,
        direction: Direction,
        quote: &ExactInQuote,
        clock: &Clock,
    ) -> impl Iterator<Item = Division> {
        let curve = curve_divisions(quote.reserve_in, quote.reserve_out, quote.curve_in);
        let transfers = [
            transfer_division(
                direction.input_ref::<Arc<Mint>>(&self.mints),
                quote.amount_in,
                clock,
            ),
            transfer_division(
                direction.output_ref::<Arc<Mint>>(&self.mints),
                quote.amount_out,
                clock,
            ),
        ];
        curve
            .chain(self.fee_divisions(quote))
            .chain(transfers.into_iter().flatten())
    }

    fn fee_divisions(&self, quote: &ExactInQuote) -> [Division; 4] {
        let (trade_rate, creator_rate) = (self.config.trade_fee_rate, self.creator_rate());
        let trade_fee = u128::from(quote.trade_fee);
        let in_net = quote.amount_in.saturating_sub(quote.input_transfer_fee);
        let (on_input, creator) = if quote.creator_fee_on_input {
            let rates = u128::from(trade_rate.0).saturating_add(u128::from(creator_rate.0));
            let total = trade_fee.saturating_add(u128::from(quote.creator_fee));
            let split = Division::new(total.saturating_mul(u128::from(creator_rate.0)), rates);
            (rounded_up(in_net, rates, FeeRate::DENOMINATOR), split)
        } else {
            (
                rounded_up(in_net, u128::from(trade_rate.0), FeeRate::DENOMINATOR),
                rounded_up(
                    quote.curve_out,
                    u128::from(creator_rate.0),
                    FeeRate::DENOMINATOR,
                ),
            )
        };
        let share = |rate: FeeRate| {
            Division::new(
                trade_fee.saturating_mul(u128::from(rate.0)),
                FeeRate::DENOMINATOR,
            )
        };
        [
            on_input,
            creator,
            share(self.config.protocol_fee_rate),
            share(self.config.fund_fee_rate),
        ]
    }
}

/// `amount × factor / divisor`, rounded up by what is added before.
fn rounded_up(amount: Amount, factor: u128, divisor: u128) -> Division {
    let numerator = u128::from(amount)
        .saturating_mul(factor)
        .saturating_add(divisor.saturating_sub(1));
    Division::new(numerator, divisor)
}

fn transfer_division(mint: &Mint, amount: Amount, clock: &Clock) -> Option<Division> {
    let basis_points = mint.transfer_fee?.at(clock.epoch).basis_points;
    let whole = u128::from(BasisPoints::MAX.get());
    (basis_points > 0).then(|| rounded_up(amount, u128::from(basis_points), whole))
}

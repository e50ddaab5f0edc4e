//! Division count: the 128-bit divisions of a swap by width, on which its compute units depend (pure).
//!
//! The chain's machine divides 64 bits in one instruction. A numerator of 2^64 or more goes through a routine that the
//! compiler supplies, and what that routine costs depends on the compiler and on the divisor: see [`DivisionCount`].
//! Follows `swap_base_input`, `swap_base_output` and `curve/{calculator,fees}.rs`, operand by operand.

use std::sync::Arc;

use crate::{
    event::FixedAmount,
    operands::SwapOperands,
    quote::{Clock, Direction, PoolSnapshot},
    token::Mint,
    transfer_fee::TransferFee,
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

/// How many of a swap's divisions are wide, by their divisors. At most thirteen together.
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

impl SwapOperands {
    /// The divisions that depend on reserves and the curve alone.
    fn curve_divisions(&self) -> [Division; 3] {
        let (reserve_in, reserve_out) = (u128::from(self.reserve_in), u128::from(self.reserve_out));
        let (curve_in, curve_out) = (u128::from(self.curve_in), u128::from(self.curve_out));
        let price = |above: u128, below: u128| Division::new(above << PRICE_SHIFT, below);
        let along = match self.fixed {
            FixedAmount::In => Division::new(
                curve_in.saturating_mul(reserve_out),
                reserve_in.saturating_add(curve_in),
            ),
            FixedAmount::Out => rounded_up(
                self.reserve_in,
                curve_out,
                reserve_out.saturating_sub(curve_out),
            ),
        };
        [
            price(reserve_out, reserve_in),
            price(reserve_in, reserve_out),
            along,
        ]
    }

    /// What goes in without the transfer fee.
    const fn in_net(&self) -> Amount {
        self.amount_in.saturating_sub(self.input_transfer_fee)
    }

    /// What comes out without the transfer fee.
    const fn received(&self) -> Amount {
        self.amount_out.saturating_sub(self.output_transfer_fee)
    }
}

impl PoolSnapshot {
    /// Every division of the swap with these numbers, of which this snapshot has the rates. A rate of zero still divides
    /// where the input is fixed, and not where a fee is found backwards; a transfer fee of zero basis points never does.
    pub fn divisions(
        &self,
        direction: Direction,
        operands: &SwapOperands,
        clock: &Clock,
    ) -> impl Iterator<Item = Division> {
        let input = direction.input_ref::<Arc<Mint>>(&self.mints);
        let output = direction.output_ref::<Arc<Mint>>(&self.mints);
        let transfers: [[Option<Division>; 3]; 2] = match operands.fixed {
            FixedAmount::In => [
                [
                    transfer_division(input, operands.amount_in, clock),
                    None,
                    None,
                ],
                [
                    transfer_division(output, operands.amount_out, clock),
                    None,
                    None,
                ],
            ],
            FixedAmount::Out => [
                inverse_transfer_divisions(output, operands.received(), operands.amount_out, clock),
                inverse_transfer_divisions(input, operands.in_net(), operands.amount_in, clock),
            ],
        };
        operands
            .curve_divisions()
            .into_iter()
            .chain(self.fee_divisions(operands))
            .chain(transfers.into_iter().flatten().flatten())
    }

    /// How many transfer fees the exchange finds backwards in this swap, 0 to 2: only an exact output has any.
    #[must_use]
    pub fn fees_found_backwards(
        &self,
        direction: Direction,
        operands: &SwapOperands,
        clock: &Clock,
    ) -> u8 {
        let is_found = |mint: &Mint| {
            operands.fixed == FixedAmount::Out && fee_to_find_backwards(mint, clock).is_some()
        };
        let [input, output] = [
            direction.input_ref(&self.mints),
            direction.output_ref(&self.mints),
        ];
        u8::from(is_found(input)).saturating_add(u8::from(is_found(output)))
    }

    fn fee_divisions(&self, operands: &SwapOperands) -> impl Iterator<Item = Division> {
        let (trade, creator) = (
            u128::from(self.config.trade_fee_rate.0),
            u128::from(self.creator_rate().0),
        );
        let trade_fee = u128::from(operands.trade_fee);
        let on_input = if operands.creator_fee_on_input {
            trade.saturating_add(creator)
        } else {
            trade
        };
        let share = |rate: FeeRate| {
            Division::new(
                trade_fee.saturating_mul(u128::from(rate.0)),
                FeeRate::DENOMINATOR,
            )
        };
        let fee = match operands.fixed {
            FixedAmount::In => Some(rounded_up(
                operands.in_net(),
                on_input,
                FeeRate::DENOMINATOR,
            )),
            FixedAmount::Out => before_fee(operands.curve_in, on_input),
        };
        let creators = if operands.creator_fee_on_input {
            let total = trade_fee.saturating_add(u128::from(operands.creator_fee));
            Some(Division::new(total.saturating_mul(creator), on_input))
        } else {
            match operands.fixed {
                FixedAmount::In => Some(rounded_up(
                    operands.curve_out,
                    creator,
                    FeeRate::DENOMINATOR,
                )),
                FixedAmount::Out => before_fee(operands.amount_out, creator),
            }
        };
        let shares = [self.config.protocol_fee_rate, self.config.fund_fee_rate].map(share);
        fee.into_iter().chain(creators).chain(shares)
    }
}

/// `amount × factor / divisor`, rounded up by what is added before.
fn rounded_up(amount: Amount, factor: u128, divisor: u128) -> Division {
    let numerator = u128::from(amount)
        .saturating_mul(factor)
        .saturating_add(divisor.saturating_sub(1));
    Division::new(numerator, divisor)
}

/// What must be given so that `amount` is left of it after a fee; without one nothing is divided.
fn before_fee(amount: Amount, rate: u128) -> Option<Division> {
    let kept = FeeRate::DENOMINATOR.saturating_sub(rate);
    (rate > 0).then(|| rounded_up(amount, FeeRate::DENOMINATOR, kept))
}

fn transfer_division(mint: &Mint, amount: Amount, clock: &Clock) -> Option<Division> {
    let basis_points = u128::from(mint.transfer_fee?.at(clock.epoch).basis_points);
    let whole = u128::from(BasisPoints::MAX.get());
    (basis_points > 0).then(|| rounded_up(amount, basis_points, whole))
}

/// The transfer fee of a mint where it takes a computation to find it backwards: one of the whole is its cap.
fn fee_to_find_backwards(mint: &Mint, clock: &Clock) -> Option<TransferFee> {
    let fee = *mint.transfer_fee?.at(clock.epoch);
    (1..BasisPoints::MAX.get())
        .contains(&fee.basis_points)
        .then_some(fee)
}

/// What finding the fee backwards divides, by which `net` is left of `sum`: the amount before the fee, the fee of that amount,
/// and once more that of the sum, which must be the same.
fn inverse_transfer_divisions(
    mint: &Mint,
    net: Amount,
    sum: Amount,
    clock: &Clock,
) -> [Option<Division>; 3] {
    let whole = u128::from(BasisPoints::MAX.get());
    let Some(fee) = fee_to_find_backwards(mint, clock) else {
        return [None; 3];
    };
    let before = rounded_up(
        net,
        whole,
        whole.saturating_sub(u128::from(fee.basis_points)),
    );
    let gross = before.numerator.checked_div(before.divisor);
    let raised = gross.map(|gross| gross.saturating_sub(u128::from(net)));
    let raised = raised.map_or(u64::MAX, |raised| u64::try_from(raised).unwrap_or(u64::MAX));
    let raised = Amount::new(raised.min(fee.maximum_fee));
    let taken = net.checked_add(raised).unwrap_or(Amount::MAX);
    [
        Some(before),
        transfer_division(mint, taken, clock),
        transfer_division(mint, sum, clock),
    ]
}

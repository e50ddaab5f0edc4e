//! Exact-out quote: the input of a swap that must deliver an exact amount, as `swap_base_output` computes it.
//!
//! The exchange takes exactly the input computed here, pays exactly the output asked for, and keeps in the pool what
//! rounding leaves. Follows `programs/cp-swap/src/instructions/swap_base_output.rs` and
//! `curve/{calculator,fees}.rs`.

use std::sync::Arc;

use crate::{
    quote::{Clock, Direction, PoolSnapshot, narrow, price_impact},
    refusal::Refusal,
    token::Mint,
    units::{Amount, BasisPoints, FeeRate},
};

/// An exact quote for an exact output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactOutQuote {
    /// What the user receives: what was asked for.
    pub received: Amount,
    /// Withheld by the output mint on the way.
    pub output_transfer_fee: Amount,
    /// The pool's input reserve before the swap, accrued fees excluded.
    pub reserve_in: Amount,
    /// The pool's output reserve before the swap, accrued fees excluded.
    pub reserve_out: Amount,
    /// Output that the curve gives, the creator's part included.
    pub curve_out: Amount,
    /// Input that moves along the curve.
    pub curve_in: Amount,
    /// What the output vault sends.
    pub amount_out: Amount,
    /// Trade fee, input token; protocol and fund fees are parts of it.
    pub trade_fee: Amount,
    /// The protocol's part of the trade fee.
    pub protocol_fee: Amount,
    /// The fund's part of the trade fee.
    pub fund_fee: Amount,
    /// Creator fee.
    pub creator_fee: Amount,
    /// Whether the creator fee is in the input token.
    pub creator_fee_on_input: bool,
    /// Withheld by the input mint on the way.
    pub input_transfer_fee: Amount,
    /// What the user sends: the quote.
    pub amount_in: Amount,
}

impl ExactOutQuote {
    /// How far this amount moves the price against the user, as [`crate::ExactInQuote::price_impact`] says.
    #[must_use]
    pub fn price_impact(&self) -> BasisPoints {
        price_impact(self.curve_in, self.reserve_in)
    }
}

/// The most a user pays: `amount_in × (10,000 + slippage) / 10,000`, rounded up.
#[must_use]
pub fn maximum_in(amount_in: Amount, slippage: BasisPoints) -> Amount {
    let whole = u128::from(BasisPoints::MAX.get());
    let maximum = u128::from(amount_in)
        .saturating_mul(whole.saturating_add(u128::from(slippage.get())))
        .div_ceil(whole);
    Amount::new(u64::try_from(maximum).unwrap_or(u64::MAX))
}

impl PoolSnapshot {
    /// What must be sent at `clock` so that exactly `received` arrives.
    ///
    /// # Errors
    /// The [`Refusal`] with which the chain would end the swap.
    pub fn quote_exact_out(
        &self,
        direction: Direction,
        received: Amount,
        clock: &Clock,
    ) -> Result<ExactOutQuote, Refusal> {
        if received == Amount::ZERO {
            return Err(Refusal::ZeroOutput);
        }
        self.check_tradable(clock)?;
        let output_transfer_fee = inverse_fee(
            direction.output_ref::<Arc<Mint>>(&self.mints),
            received,
            clock,
        )?;
        let out_gross = received
            .checked_add(output_transfer_fee)
            .ok_or(Refusal::Overflow)?;
        let reserves = self.reserves()?;
        let (reserve_in, reserve_out) = (direction.input(&reserves), direction.output(&reserves));
        // The exchange computes the price, which an empty side does not have, before it looks at fees.
        if reserve_in == Amount::ZERO || reserve_out == Amount::ZERO {
            return Err(Refusal::ZeroReserves);
        }
        let creator_on_input = self.creator_fee_on_input(direction)?;
        let creator_rate = self.creator_rate();
        let curve_out = if creator_on_input {
            out_gross
        } else {
            before_fee(out_gross, creator_rate.0)?
        };
        let curve_in = back_along_the_curve(curve_out, reserve_in, reserve_out)?;
        let trade_rate = self.config.trade_fee_rate.0;
        let (in_net, creator_on_in) = if creator_on_input {
            let rates = trade_rate
                .checked_add(creator_rate.0)
                .ok_or(Refusal::Overflow)?;
            let in_net = before_fee(curve_in, rates)?;
            (
                in_net,
                share(in_net.saturating_sub(curve_in), creator_rate.0, rates)?,
            )
        } else {
            (before_fee(curve_in, trade_rate)?, Amount::ZERO)
        };
        let total = in_net.saturating_sub(curve_in);
        let input_transfer_fee =
            inverse_fee(direction.input_ref::<Arc<Mint>>(&self.mints), in_net, clock)?;
        let amount_in = in_net
            .checked_add(input_transfer_fee)
            .ok_or(Refusal::Overflow)?;
        // The token program refuses a transfer that would overflow the vault's balance.
        direction
            .input(&self.vault_amounts)
            .checked_add(in_net)
            .ok_or(Refusal::Overflow)?;
        let trade_fee = total.saturating_sub(creator_on_in);
        let trade = u128::from(trade_fee);
        Ok(ExactOutQuote {
            received,
            output_transfer_fee,
            reserve_in,
            reserve_out,
            curve_out,
            curve_in,
            amount_out: out_gross,
            trade_fee,
            protocol_fee: narrow(self.config.protocol_fee_rate.floor_of(trade))?,
            fund_fee: narrow(self.config.fund_fee_rate.floor_of(trade))?,
            creator_fee: if creator_on_input {
                creator_on_in
            } else {
                curve_out.saturating_sub(out_gross)
            },
            creator_fee_on_input: creator_on_input,
            input_transfer_fee,
            amount_in,
        })
    }
}

/// `amount × 1,000,000 / (1,000,000 − rate)`, rounded up: what leaves `amount` once the fee is taken. No amount does
/// where the fee is the whole of it: the exchange panics there, as for every amount beyond 64 bits.
fn before_fee(amount: Amount, rate: u64) -> Result<Amount, Refusal> {
    if rate == 0 {
        return Ok(amount);
    }
    let kept = FeeRate::DENOMINATOR
        .checked_sub(u128::from(rate))
        .filter(|kept| *kept > 0)
        .ok_or(Refusal::Overflow)?;
    narrow(
        u128::from(amount)
            .saturating_mul(FeeRate::DENOMINATOR)
            .div_ceil(kept),
    )
}

/// `reserve_in × curve_out / (reserve_out − curve_out)`, rounded up.
fn back_along_the_curve(
    curve_out: Amount,
    reserve_in: Amount,
    reserve_out: Amount,
) -> Result<Amount, Refusal> {
    let left = reserve_out
        .checked_sub(curve_out)
        .filter(|left| *left > Amount::ZERO)
        .ok_or(Refusal::InsufficientReserves)?;
    narrow(
        u128::from(reserve_in)
            .saturating_mul(u128::from(curve_out))
            .div_ceil(u128::from(left)),
    )
}

/// The creator's part of a fee taken at both rates together, rounded down. With no rate at all the
/// exchange divides by zero and refuses.
fn share(total: Amount, creator_rate: u64, rates: u64) -> Result<Amount, Refusal> {
    u128::from(total)
        .saturating_mul(u128::from(creator_rate))
        .checked_div(u128::from(rates))
        .ok_or(Refusal::ZeroTradingTokens)
        .and_then(narrow)
}

fn inverse_fee(mint: &Mint, net: Amount, clock: &Clock) -> Result<Amount, Refusal> {
    mint.transfer_fee.map_or(Ok(Amount::ZERO), |config| {
        config.at(clock.epoch).inverse_of(net)
    })
}

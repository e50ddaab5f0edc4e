//! Exact-in quote: the output of a swap, in the order and with the rounding of `swap_base_input`.
//!
//! Follows `programs/cp-swap/src/instructions/swap_base_input.rs` and `curve/{calculator,fees}.rs`.

use std::sync::Arc;

use crate::{
    accounts::{AmmConfig, CreatorFeeOn, PerToken, PoolState},
    refusal::Refusal,
    token::Mint,
    units::{Amount, BasisPoints, FeeRate, ceil_per_million},
};

/// Which token goes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Token 0 in, token 1 out.
    ZeroForOne,
    /// Token 1 in, token 0 out.
    OneForZero,
}

impl Direction {
    /// The input side of a pair.
    pub const fn input<T: Copy>(self, pair: &PerToken<T>) -> T {
        match self {
            Self::ZeroForOne => pair.token_0,
            Self::OneForZero => pair.token_1,
        }
    }

    /// The output side of a pair.
    pub const fn output<T: Copy>(self, pair: &PerToken<T>) -> T {
        match self {
            Self::ZeroForOne => pair.token_1,
            Self::OneForZero => pair.token_0,
        }
    }

    /// The input side of a pair, borrowed.
    pub const fn input_ref<T>(self, pair: &PerToken<T>) -> &T {
        match self {
            Self::ZeroForOne => &pair.token_0,
            Self::OneForZero => &pair.token_1,
        }
    }

    /// The output side of a pair, borrowed.
    pub const fn output_ref<T>(self, pair: &PerToken<T>) -> &T {
        match self {
            Self::ZeroForOne => &pair.token_1,
            Self::OneForZero => &pair.token_0,
        }
    }
}

/// The chain's time, as programs read it from the Clock sysvar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Epoch, which selects transfer-fee schedules.
    pub epoch: u64,
    /// Unix time, seconds, which opens pools.
    pub unix_timestamp: i64,
}

/// Everything a quote depends on, read at one moment. The parts are shared: a swap changes a pool and
/// two balances, while hundreds of thousands of pools have a configuration and a mint in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSnapshot {
    /// The pool.
    pub pool: Arc<PoolState>,
    /// Its fee configuration.
    pub config: Arc<AmmConfig>,
    /// Balances of its vaults, accrued fees included, smallest units.
    pub vault_amounts: PerToken<Amount>,
    /// Whether its vaults are frozen.
    pub vaults_frozen: bool,
    /// Its mints.
    pub mints: PerToken<Arc<Mint>>,
}

/// An exact quote and all that went into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactInQuote {
    /// What the user sends.
    pub amount_in: Amount,
    /// Withheld from it by the input mint.
    pub input_transfer_fee: Amount,
    /// The pool's input reserve before the swap, accrued fees excluded.
    pub reserve_in: Amount,
    /// The pool's output reserve before the swap, accrued fees excluded.
    pub reserve_out: Amount,
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
    /// Input that moves along the curve.
    pub curve_in: Amount,
    /// Output that the curve gives for it.
    pub curve_out: Amount,
    /// What the output vault sends.
    pub amount_out: Amount,
    /// Withheld from it by the output mint.
    pub output_transfer_fee: Amount,
    /// What the user receives: the quote.
    pub received: Amount,
}

impl ExactInQuote {
    /// How far this amount moves the price against the user, fees excluded: one minus the price on
    /// the curve over the price before, rounded down to basis points.
    #[must_use]
    pub fn price_impact(&self) -> BasisPoints {
        price_impact(self.curve_in, self.reserve_in)
    }
}

pub(crate) fn price_impact(curve_in: Amount, reserve_in: Amount) -> BasisPoints {
    let curve_in = u128::from(curve_in);
    let after = u128::from(reserve_in).saturating_add(curve_in);
    let impact = curve_in
        .saturating_mul(u128::from(BasisPoints::MAX.get()))
        .checked_div(after)
        .unwrap_or(0);
    u16::try_from(impact)
        .ok()
        .and_then(BasisPoints::new)
        .unwrap_or(BasisPoints::MAX)
}

/// The least a user accepts: `received × (10,000 − slippage) / 10,000`, rounded down.
#[must_use]
pub fn minimum_out(received: Amount, slippage: BasisPoints) -> Amount {
    let whole = u128::from(BasisPoints::MAX.get());
    let kept = whole.saturating_sub(u128::from(slippage.get()));
    let minimum = u128::from(received)
        .saturating_mul(kept)
        .checked_div(whole)
        .unwrap_or(0);
    u64::try_from(minimum).map_or(received, Amount::new)
}

impl PoolSnapshot {
    /// What swapping exactly `amount_in` pays at `clock`.
    ///
    /// # Errors
    /// The [`Refusal`] with which the chain would end the swap, found in the exchange's own order
    /// except for refusals of the token programs, which come first where they are certain.
    pub fn quote_exact_in(
        &self,
        direction: Direction,
        amount_in: Amount,
        clock: &Clock,
    ) -> Result<ExactInQuote, Refusal> {
        self.check_tradable(clock)?;
        let input_transfer_fee = transfer_fee(
            direction.input_ref::<Arc<Mint>>(&self.mints),
            amount_in,
            clock,
        );
        let in_net = positive(
            amount_in.checked_sub(input_transfer_fee),
            Refusal::ZeroInput,
        )?;
        let reserves = self.reserves()?;
        let (reserve_in, reserve_out) = (direction.input(&reserves), direction.output(&reserves));
        // The exchange computes the price, which an empty side does not have, before it looks at fees.
        if reserve_in == Amount::ZERO || reserve_out == Amount::ZERO {
            return Err(Refusal::ZeroReserves);
        }
        let creator_on_input = self.creator_fee_on_input(direction)?;
        let fees = self.input_fees(in_net, creator_on_input)?;
        let curve_out = along_the_curve(fees.curve_in, reserve_in, reserve_out)?;
        let creator_fee = if creator_on_input {
            fees.creator
        } else {
            narrow(self.creator_rate().ceil_of(u128::from(curve_out)))?
        };
        let kept_by_creator = if creator_on_input {
            Amount::ZERO
        } else {
            creator_fee
        };
        let amount_out = curve_out
            .checked_sub(kept_by_creator)
            .ok_or(Refusal::ZeroTradingTokens)?;
        let output_transfer_fee = transfer_fee(
            direction.output_ref::<Arc<Mint>>(&self.mints),
            amount_out,
            clock,
        );
        let received = positive(
            amount_out.checked_sub(output_transfer_fee),
            Refusal::ZeroOutput,
        )?;
        // The token program refuses a transfer that would overflow the vault's balance.
        direction
            .input(&self.vault_amounts)
            .checked_add(in_net)
            .ok_or(Refusal::Overflow)?;
        let trade = u128::from(fees.trade);
        Ok(ExactInQuote {
            amount_in,
            input_transfer_fee,
            reserve_in,
            reserve_out,
            trade_fee: fees.trade,
            protocol_fee: narrow(self.config.protocol_fee_rate.floor_of(trade))?,
            fund_fee: narrow(self.config.fund_fee_rate.floor_of(trade))?,
            creator_fee,
            creator_fee_on_input: creator_on_input,
            curve_in: fees.curve_in,
            curve_out,
            amount_out,
            output_transfer_fee,
            received,
        })
    }

    /// Whether the exchange swaps through the pool at all now, whatever the amount.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check_tradable(&self, clock: &Clock) -> Result<(), Refusal> {
        if self.pool.swap_disabled() {
            return Err(Refusal::SwapDisabled);
        }
        // A clock before 1970 is before every opening time.
        if u64::try_from(clock.unix_timestamp).unwrap_or(0) < self.pool.open_time {
            return Err(Refusal::NotOpenYet {
                open_time: self.pool.open_time,
            });
        }
        for mint in [&self.mints.token_0, &self.mints.token_1] {
            if let Some(extension) = mint.unsupported_extension {
                return Err(Refusal::UnsupportedExtension { extension });
            }
        }
        if self.vaults_frozen {
            return Err(Refusal::FrozenVault);
        }
        Ok(())
    }

    /// Vault balances less the fees that are not collected yet.
    ///
    /// # Errors
    /// When a vault holds less than these.
    pub fn reserves(&self) -> Result<PerToken<Amount>, Refusal> {
        let pool = &self.pool;
        Ok(PerToken::new(
            reserve(
                self.vault_amounts.token_0,
                pool.protocol_fees.token_0,
                pool.fund_fees.token_0,
                pool.creator_fees.token_0,
            )?,
            reserve(
                self.vault_amounts.token_1,
                pool.protocol_fees.token_1,
                pool.fund_fees.token_1,
                pool.creator_fees.token_1,
            )?,
        ))
    }

    /// The side is decided, and an unknown mode refused, even where no creator fee is in force.
    pub(crate) fn creator_fee_on_input(&self, direction: Direction) -> Result<bool, Refusal> {
        let mode = self.pool.creator_fee_on;
        match (CreatorFeeOn::from_byte(mode), direction) {
            (None, _) => Err(Refusal::InvalidFeeModel { mode }),
            (Some(CreatorFeeOn::BothToken), _)
            | (Some(CreatorFeeOn::OnlyToken0), Direction::ZeroForOne)
            | (Some(CreatorFeeOn::OnlyToken1), Direction::OneForZero) => Ok(true),
            (Some(CreatorFeeOn::OnlyToken0 | CreatorFeeOn::OnlyToken1), _) => Ok(false),
        }
    }

    pub(crate) fn creator_rate(&self) -> FeeRate {
        if self.pool.enable_creator_fee {
            self.config.creator_fee_rate
        } else {
            FeeRate::ZERO
        }
    }

    fn input_fees(&self, in_net: Amount, creator_on_input: bool) -> Result<InputFees, Refusal> {
        let amount = u128::from(in_net);
        let trade_rate = self.config.trade_fee_rate;
        let (trade, creator) = if creator_on_input {
            // One rounding for both fees together, then a split: two roundings would be one unit off.
            let creator_rate = u128::from(self.creator_rate().0);
            let rates = u128::from(trade_rate.0).saturating_add(creator_rate);
            let total = ceil_per_million(amount, rates);
            let creator = total
                .saturating_mul(creator_rate)
                .checked_div(rates)
                .ok_or(Refusal::ZeroTradingTokens)?;
            (total.saturating_sub(creator), creator)
        } else {
            (trade_rate.ceil_of(amount), 0)
        };
        let curve_in = amount
            .checked_sub(trade.saturating_add(creator))
            .ok_or(Refusal::ZeroTradingTokens)?;
        Ok(InputFees {
            trade: narrow(trade)?,
            creator: narrow(creator)?,
            curve_in: narrow(curve_in)?,
        })
    }
}

/// Fees taken from the input, and what is left of it.
struct InputFees {
    trade: Amount,
    creator: Amount,
    curve_in: Amount,
}

/// `curve_in × reserve_out / (reserve_in + curve_in)`, rounded down.
fn along_the_curve(
    curve_in: Amount,
    reserve_in: Amount,
    reserve_out: Amount,
) -> Result<Amount, Refusal> {
    let curve_in = u128::from(curve_in);
    let out = curve_in
        .saturating_mul(u128::from(reserve_out))
        .checked_div(u128::from(reserve_in).saturating_add(curve_in))
        .ok_or(Refusal::ZeroReserves)?;
    narrow(out)
}

fn reserve(vault: Amount, protocol: u64, fund: u64, creator: u64) -> Result<Amount, Refusal> {
    let booked = protocol
        .checked_add(fund)
        .and_then(|sum| sum.checked_add(creator))
        .ok_or(Refusal::Overflow)?;
    vault
        .checked_sub(Amount::new(booked))
        .ok_or(Refusal::InsufficientVault)
}

pub(crate) fn transfer_fee(mint: &Mint, amount: Amount, clock: &Clock) -> Amount {
    mint.transfer_fee
        .map_or(Amount::ZERO, |config| config.at(clock.epoch).of(amount))
}

pub(crate) fn positive(amount: Option<Amount>, refusal: Refusal) -> Result<Amount, Refusal> {
    amount
        .filter(|amount| *amount > Amount::ZERO)
        .ok_or(refusal)
}

pub(crate) fn narrow(amount: u128) -> Result<Amount, Refusal> {
    u64::try_from(amount)
        .map(Amount::new)
        .map_err(|_| Refusal::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_out_rounds_down_and_covers_the_whole_range() {
        let bps = |n| BasisPoints::new(n).expect("in range");
        assert_eq!(minimum_out(Amount::new(1_000), bps(50)), Amount::new(995));
        assert_eq!(minimum_out(Amount::new(999), bps(50)), Amount::new(994));
        assert_eq!(
            minimum_out(Amount::new(u64::MAX), bps(0)),
            Amount::new(u64::MAX)
        );
        assert_eq!(
            minimum_out(Amount::new(u64::MAX), bps(10_000)),
            Amount::new(0)
        );
    }

    #[test]
    fn price_impact_is_the_share_of_the_moved_reserve() {
        let quote = |curve_in, reserve_in| ExactInQuote {
            amount_in: Amount::ZERO,
            input_transfer_fee: Amount::ZERO,
            reserve_in: Amount::new(reserve_in),
            reserve_out: Amount::ZERO,
            trade_fee: Amount::ZERO,
            protocol_fee: Amount::ZERO,
            fund_fee: Amount::ZERO,
            creator_fee: Amount::ZERO,
            creator_fee_on_input: true,
            curve_in: Amount::new(curve_in),
            curve_out: Amount::ZERO,
            amount_out: Amount::ZERO,
            output_transfer_fee: Amount::ZERO,
            received: Amount::ZERO,
        };
        assert_eq!(quote(1, 99).price_impact().get(), 100);
        assert_eq!(quote(u64::MAX, 1).price_impact().get(), 9_999);
        assert_eq!(quote(0, 0).price_impact().get(), 0);
    }
}

//! Arithmetic of a swap with a given input or output: fees and the constant product (no accounts, no clock).

use crate::error::ExchangeError;
use pinocchio::error::ProgramError;

/// Every rate is a number of millionths.
const RATE_DENOMINATOR: u128 = 1_000_000;

/// The rates in force.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Of the input.
    pub trade: u64,
    /// Of the trade fee.
    pub protocol: u64,
    /// Of the trade fee.
    pub fund: u64,
    /// Of the input or the output; zero when the pool has it disabled.
    pub creator: u64,
}

/// What a swap costs. `protocol` and `fund` are parts of `trade`, not additions to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    pub trade: u64,
    pub protocol: u64,
    pub fund: u64,
    pub creator: u64,
}

/// The reserves a swap trades against, net of accrued fees.
#[derive(Clone, Copy, Debug)]
pub struct Reserves {
    pub input: u64,
    pub output: u64,
}

/// What a swap does to the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What enters the input vault, after the input mint's transfer fee.
    pub amount_in: u64,
    /// What leaves the output vault, before the output mint's transfer fee.
    pub amount_out: u64,
    pub fees: Fees,
    /// Product of the reserves before the swap, fees left out.
    pub product_before: u128,
    /// And after it.
    pub product_after: u128,
}

/// The swap of `amount_in`, which is net of the input mint's transfer fee.
///
/// # Errors
/// `ZeroTradingTokens` when the fees exceed the input, or when a creator fee on the input is to be split out of a
/// total rate of zero.
pub fn swap_base_input(
    amount_in: u64,
    reserves: Reserves,
    rates: &Rates,
    creator_fee_on_input: bool,
) -> Result<Outcome, ExchangeError> {
    compute(amount_in, reserves, rates, creator_fee_on_input)
        .ok_or(ExchangeError::ZeroTradingTokens)
}

fn compute(
    amount_in: u64,
    reserves: Reserves,
    rates: &Rates,
    creator_fee_on_input: bool,
) -> Option<Outcome> {
    let (trade, creator_in) = if creator_fee_on_input {
        let rate = rates.trade.checked_add(rates.creator)?;
        let total = share_ceil(amount_in, rate)?;
        let creator = floor_div(total, rates.creator, u128::from(rate))?;
        (total.checked_sub(creator)?, creator)
    } else {
        (share_ceil(amount_in, rates.trade)?, 0)
    };
    let traded = amount_in.checked_sub(trade)?.checked_sub(creator_in)?;

    let (x, y) = (u128::from(reserves.input), u128::from(reserves.output));
    let x_after = x.checked_add(u128::from(traded))?;
    let swapped = u128::from(traded).checked_mul(y)?.checked_div(x_after)?;
    let y_after = y.checked_sub(swapped)?;
    let swapped = u64::try_from(swapped).ok()?;

    let creator = if creator_fee_on_input {
        creator_in
    } else {
        share_ceil(swapped, rates.creator)?
    };
    let amount_out = if creator_fee_on_input {
        swapped
    } else {
        swapped.checked_sub(creator)?
    };
    Some(Outcome {
        amount_in,
        amount_out,
        fees: Fees {
            trade,
            protocol: floor_div(trade, rates.protocol, RATE_DENOMINATOR)?,
            fund: floor_div(trade, rates.fund, RATE_DENOMINATOR)?,
            creator,
        },
        product_before: x.checked_mul(y)?,
        product_after: x_after.checked_mul(y_after)?,
    })
}

/// The swap that lets exactly `amount_out` leave the output vault, the output mint's transfer fee included.
///
/// # Errors
/// `ZeroTradingTokens` when a creator fee on the input is to be split out of a total rate of zero; `ArithmeticOverflow`
/// where the real program panics.
pub fn swap_base_output(
    amount_out: u64,
    reserves: Reserves,
    rates: &Rates,
    creator_fee_on_input: bool,
) -> Result<Outcome, ProgramError> {
    const PANIC: ProgramError = ProgramError::ArithmeticOverflow;
    let swapped = if creator_fee_on_input {
        amount_out
    } else {
        before_fee(amount_out, rates.creator).ok_or(PANIC)?
    };
    let (x, y) = (u128::from(reserves.input), u128::from(reserves.output));
    let y_after = y.checked_sub(u128::from(swapped)).ok_or(PANIC)?;
    let paid = x.checked_mul(u128::from(swapped)).ok_or(PANIC)?;
    let traded = ceil_div(paid, y_after).ok_or(PANIC)?;

    let rate = if creator_fee_on_input {
        rates.trade.checked_add(rates.creator).ok_or(PANIC)?
    } else {
        rates.trade
    };
    let amount_in = before_fee(traded, rate).ok_or(PANIC)?;
    let total = amount_in.checked_sub(traded).ok_or(PANIC)?;
    let creator = if creator_fee_on_input {
        floor_div(total, rates.creator, u128::from(rate)).ok_or(ExchangeError::ZeroTradingTokens)?
    } else {
        swapped.checked_sub(amount_out).ok_or(PANIC)?
    };
    let trade = if creator_fee_on_input {
        total.checked_sub(creator).ok_or(PANIC)?
    } else {
        total
    };
    let x_after = x.checked_add(u128::from(traded)).ok_or(PANIC)?;
    Ok(Outcome {
        amount_in,
        amount_out,
        fees: Fees {
            trade,
            protocol: floor_div(trade, rates.protocol, RATE_DENOMINATOR).ok_or(PANIC)?,
            fund: floor_div(trade, rates.fund, RATE_DENOMINATOR).ok_or(PANIC)?,
            creator,
        },
        product_before: x.checked_mul(y).ok_or(PANIC)?,
        product_after: x_after.checked_mul(y_after).ok_or(PANIC)?,
    })
}

/// The least amount of which `rest` is left once `rate` millionths of it, rounded up, are taken.
fn before_fee(rest: u64, rate: u64) -> Option<u64> {
    if rate == 0 {
        return Some(rest);
    }
    let kept = RATE_DENOMINATOR.checked_sub(u128::from(rate))?;
    ceil_div(u128::from(rest).checked_mul(RATE_DENOMINATOR)?, kept)
}

fn ceil_div(dividend: u128, divisor: u128) -> Option<u64> {
    let quotient = dividend
        .checked_add(divisor.checked_sub(1)?)?
        .checked_div(divisor)?;
    u64::try_from(quotient).ok()
}

/// `amount * rate` millionths, rounded up.
fn share_ceil(amount: u64, rate: u64) -> Option<u64> {
    let product = u128::from(amount).checked_mul(u128::from(rate))?;
    u64::try_from(product.div_ceil(RATE_DENOMINATOR)).ok()
}

/// `amount * numerator / denominator`, rounded down.
fn floor_div(amount: u64, numerator: u64, denominator: u128) -> Option<u64> {
    let product = u128::from(amount).checked_mul(u128::from(numerator))?;
    u64::try_from(product.checked_div(denominator)?).ok()
}

/// The prices of both tokens in each other, Q32.32, as the oracle records them.
///
/// # Errors
/// `ArithmeticOverflow` for an empty reserve, which has no price: the real program panics here, and either way the
/// transaction fails.
pub fn prices_x32(reserves: [u64; 2]) -> Result<[u128; 2], ProgramError> {
    let price = |of: u64, in_terms_of: u64| {
        (u128::from(in_terms_of) << 32)
            .checked_div(u128::from(of))
            .ok_or(ProgramError::ArithmeticOverflow)
    };
    Ok([
        price(reserves[0], reserves[1])?,
        price(reserves[1], reserves[0])?,
    ])
}

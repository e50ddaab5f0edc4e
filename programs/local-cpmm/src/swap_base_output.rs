//! `swap_base_output`: exactly `amount_out_received` to the user, for as little as the curve asks.

use crate::{
    checks::require,
    curve,
    error::ExchangeError,
    swap::{Accounts, Loaded, Swap},
    take_u64, token,
};
use pinocchio::{
    AccountView, ProgramResult,
    error::ProgramError,
    sysvars::{Sysvar, clock::Clock},
};

/// Specification:
/// - The amount to receive is more than zero; then, that the pool is open and its swaps are not switched off.
/// - What leaves the vault is that amount with the output mint's transfer fee on it, so that it arrives to the unit.
/// - The input is the least that pays for it, rounded up at each step, with the input mint's transfer fee on it. It is
///   at most `max_amount_in`.
/// - The product of the reserves does not fall; fees accrue in the pool's counters and stay in the vaults.
/// - The price before the swap goes to the oracle.
///
/// Where the real program panics (more than the reserve is asked for, a sum leaves 64 bits, a fee takes everything) this
/// one fails with `ArithmeticOverflow`: neither is a code of the exchange.
pub fn process(accounts: &[AccountView], arguments: &[u8]) -> ProgramResult {
    let (max_amount_in, arguments) = take_u64(arguments)?;
    let (amount_out_received, _) = take_u64(arguments)?;
    let (mut accounts, loaded) = Accounts::checked(accounts)?;
    require(amount_out_received > 0, ExchangeError::RequireGtViolated)?;
    let clock = Clock::get()?;
    Accounts::require_open(&loaded, &clock)?;
    let swap = compute(
        &accounts,
        &loaded,
        max_amount_in,
        amount_out_received,
        clock.epoch,
    )?;
    accounts.settle(&loaded, &swap, &clock)
}

#[inline(always)]
fn compute(
    accounts: &Accounts,
    loaded: &Loaded,
    max_amount_in: u64,
    amount_out_received: u64,
    epoch: u64,
) -> Result<Swap, ProgramError> {
    let output_transfer_fee =
        token::inverse_transfer_fee(&accounts.output_mint, amount_out_received, epoch)?;
    let amount_out = sum(amount_out_received, output_transfer_fee)?;

    let terms = accounts.terms(loaded)?;
    let outcome = curve::swap_base_output(
        amount_out,
        terms.reserves,
        &terms.rates,
        terms.creator_fee_on_input,
    )?;

    let input_transfer_fee =
        token::inverse_transfer_fee(&accounts.input_mint, outcome.amount_in, epoch)?;
    let amount_in = sum(outcome.amount_in, input_transfer_fee)?;
    require(amount_in <= max_amount_in, ExchangeError::ExceededSlippage)?;
    Ok(Swap {
        terms,
        is_base_input: false,
        amount_in,
        input_transfer_fee,
        output_transfer_fee,
        outcome,
    })
}

fn sum(amount: u64, fee: u64) -> Result<u64, ProgramError> {
    amount
        .checked_add(fee)
        .ok_or(ProgramError::ArithmeticOverflow)
}

//! `swap_base_input`: exactly `amount_in` in, as much as the curve gives out.

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
/// - The pool is open and its swaps are not switched off.
/// - The input after the input mint's transfer fee is more than zero.
/// - What arrives after the output mint's transfer fee is more than zero and at least `minimum_amount_out`.
/// - The product of the reserves does not fall; fees accrue in the pool's counters and stay in the vaults.
/// - The price before the swap goes to the oracle.
pub fn process(accounts: &[AccountView], arguments: &[u8]) -> ProgramResult {
    let (amount_in, arguments) = take_u64(arguments)?;
    let (minimum_amount_out, _) = take_u64(arguments)?;
    let (mut accounts, loaded) = Accounts::checked(accounts)?;
    let clock = Clock::get()?;
    Accounts::require_open(&loaded, &clock)?;
    let swap = compute(
        &accounts,
        &loaded,
        amount_in,
        minimum_amount_out,
        clock.epoch,
    )?;
    accounts.settle(&loaded, &swap, &clock)
}

#[inline(always)]
fn compute(
    accounts: &Accounts,
    loaded: &Loaded,
    amount_in: u64,
    minimum_amount_out: u64,
    epoch: u64,
) -> Result<Swap, ProgramError> {
    let input_transfer_fee = token::transfer_fee(&accounts.input_mint, amount_in, epoch)?;
    let net_in = amount_in.saturating_sub(input_transfer_fee);
    require(net_in > 0, ExchangeError::RequireGtViolated)?;

    let terms = accounts.terms(loaded)?;
    let outcome = curve::swap_base_input(
        net_in,
        terms.reserves,
        &terms.rates,
        terms.creator_fee_on_input,
    )?;

    let output_transfer_fee =
        token::transfer_fee(&accounts.output_mint, outcome.amount_out, epoch)?;
    let received = outcome.amount_out.saturating_sub(output_transfer_fee);
    require(received > 0, ExchangeError::RequireGtViolated)?;
    require(
        received >= minimum_amount_out,
        ExchangeError::ExceededSlippage,
    )?;
    Ok(Swap {
        terms,
        is_base_input: true,
        amount_in,
        input_transfer_fee,
        output_transfer_fee,
        outcome,
    })
}

//! One hop: the accounts of `swap` and `swap_exact_out`, each with who checks what, and the order of the checks.

use super::terms::{Exact, Terms};
use crate::{
    constants::EXCHANGE_ID,
    error::{Checked, SwapGuardError, ensure},
    events::log_swapped,
    measure::{
        Expected, OUTPUT, checked_balance, received_at_least, spent_at_most, unchecked_balance,
    },
    runtime::{
        Accounts, ExchangeCall, LISTED, Listed, Room, SWAP_BASE_INPUT, SWAP_BASE_OUTPUT, SwapData,
    },
};
use anchor_lang::{
    ErrorCode, TryAccounts, address_eq, pinocchio::cpi::set_return_data, prelude::*,
};

/// The exchange's thirteen accounts in its own order, with the exchange's program inserted as the second.
///
/// "The exchange checks" names a check that Raydium CPMM makes in both of its swap instructions; it is relied upon
/// because the program id is pinned, and because nothing it could let through escapes the two balance comparisons.
#[derive(Accounts)]
pub struct Swap {
    /// Pays the input and owns the output, unless another receiver is stated. Checked here: signed.
    pub user: Signer,
    /// Checked here: the pinned address. The runtime checks that it is executable.
    #[account(address = EXCHANGE_ID @ SwapGuardError::WrongExchange)]
    pub exchange_program: UncheckedAccount,
    /// The exchange checks: its own derived address.
    pub authority: UncheckedAccount,
    /// The exchange checks: named by the pool, its own account, of the right kind.
    pub amm_config: UncheckedAccount,
    /// The exchange checks: its own account, of the right kind.
    #[account(mut)]
    pub pool_state: UncheckedAccount,
    /// Checked here: not the output account. The token program checks that the user may spend from it.
    ///
    /// Exempt from the framework's refusal of repeated writable accounts, so that repeating it as the output account
    /// is answered with the guard's own error. Every other writable account still refuses to be a repetition of it.
    #[account(unsafe(dup))]
    pub input_token_account: UncheckedAccount,
    /// Checked here, before and after the exchange: a token account of the output mint, owned by the user or the stated
    /// receiver. The exchange does not check the owner. The token program checks that it is not frozen.
    #[account(unsafe(dup))]
    pub output_token_account: UncheckedAccount,
    /// The exchange checks: one of the pool's two vaults.
    #[account(mut)]
    pub input_vault: UncheckedAccount,
    /// The exchange checks: the other one of the pool's two vaults.
    #[account(mut)]
    pub output_vault: UncheckedAccount,
    /// The exchange checks: SPL Token or Token-2022.
    pub input_token_program: UncheckedAccount,
    /// The exchange checks: SPL Token or Token-2022.
    pub output_token_program: UncheckedAccount,
    /// The exchange checks: the mint of the input vault.
    pub input_mint: UncheckedAccount,
    /// The exchange checks: the mint of the output vault. The guard compares the output account with it.
    pub output_mint: UncheckedAccount,
    /// The exchange checks: named by the pool, its own account, of the right kind.
    #[account(mut)]
    pub observation_state: UncheckedAccount,
}

/// How many accounts there are.
pub const ACCOUNTS: usize = <Swap as TryAccounts>::HEADER_SIZE;

/// Positions of the accounts in the list.
mod at {
    pub const USER: usize = 0;
    pub const EXCHANGE_PROGRAM: usize = 1;
    pub const AUTHORITY: usize = 2;
    pub const AMM_CONFIG: usize = 3;
    pub const POOL_STATE: usize = 4;
    pub const INPUT: usize = 5;
    pub const OUTPUT: usize = 6;
    pub const INPUT_VAULT: usize = 7;
    pub const OUTPUT_VAULT: usize = 8;
    pub const INPUT_TOKEN_PROGRAM: usize = 9;
    pub const OUTPUT_TOKEN_PROGRAM: usize = 10;
    pub const INPUT_MINT: usize = 11;
    pub const OUTPUT_MINT: usize = 12;
    pub const OBSERVATION_STATE: usize = 13;
}

/// Positions whose account must be writable.
const WRITTEN: [usize; 6] = [
    at::POOL_STATE,
    at::INPUT,
    at::OUTPUT,
    at::INPUT_VAULT,
    at::OUTPUT_VAULT,
    at::OBSERVATION_STATE,
];

/// The instruction behind the program's entrypoint: the accounts each for itself, with the framework's codes in its
/// order, and then as behind its dispatcher.
///
/// # Errors
/// `ConstraintDuplicateMutableAccount`, `MissingRequiredSignature`, `ConstraintMut`, `WrongExchange`, then the first
/// check of [`execute`] that fails; a failure of the exchange ends the transaction with its own error.
#[inline(always)]
pub fn serve(
    accounts: &Accounts<'_, ACCOUNTS>,
    terms: &Terms,
    receiver: Option<&Address>,
) -> Checked {
    let [unique, ..] = Swap::MUT_MASK;
    ensure(
        accounts.repeated & unique == 0,
        ErrorCode::ConstraintDuplicateMutableAccount,
    )?;
    let user = accounts.at(at::USER);
    ensure(user.is_signer(), ProgramError::MissingRequiredSignature)?;
    ensure(accounts.are_writable(&WRITTEN), ErrorCode::ConstraintMut)?;
    ensure(
        address_eq(accounts.at(at::EXCHANGE_PROGRAM).address(), &EXCHANGE_ID),
        SwapGuardError::WrongExchange,
    )?;
    execute(accounts, terms, receiver.unwrap_or(user.address()))
}

/// The instruction behind the framework's dispatcher.
///
/// # Errors
/// As [`serve`].
pub fn handler(accounts: &Swap, terms: &Terms, receiver: &Address) -> Checked {
    let accounts = [
        *accounts.user.account(),
        *accounts.exchange_program.account(),
        *accounts.authority.account(),
        *accounts.amm_config.account(),
        *accounts.pool_state.account(),
        *accounts.input_token_account.account(),
        *accounts.output_token_account.account(),
        *accounts.input_vault.account(),
        *accounts.output_vault.account(),
        *accounts.input_token_program.account(),
        *accounts.output_token_program.account(),
        *accounts.input_mint.account(),
        *accounts.output_mint.account(),
        *accounts.observation_state.account(),
    ];
    execute(&Room::empty().fill(&accounts), terms, receiver)
}

/// Check, measure, call, measure, record. The accounts are those of `Swap`, each checked for itself.
#[inline(always)]
fn execute(accounts: &Accounts<'_, ACCOUNTS>, terms: &Terms, receiver: &Address) -> Checked {
    let [input, output] = [at::INPUT, at::OUTPUT].map(|at| accounts.at(at));
    terms.check_amounts()?;
    ensure(
        !address_eq(input.address(), output.address()),
        SwapGuardError::SameTokenAccount,
    )?;
    terms.check_expiry()?;
    let output_mint = accounts.at(at::OUTPUT_MINT);
    let expected = Expected {
        mint: output_mint.address(),
        owner: receiver,
    };
    let output_before = checked_balance(&output, &expected, &OUTPUT)?;
    let input_before = unchecked_balance(&input);

    let (discriminator, second) = match terms.exact {
        // Asked for no minimum: the guard compares what arrived, so that falling short is always its own error.
        Exact::Input => (SWAP_BASE_INPUT, 0),
        // With the maximum handed on: past it, the exchange refuses before anything moves.
        Exact::Output => (SWAP_BASE_OUTPUT, terms.minimum_received),
    };
    let mut data = SwapData {
        discriminator,
        amounts: [terms.maximum_spent, second].map(u64::to_le_bytes),
    };
    ExchangeCall::new(&mut listed(accounts), &mut data).invoke(accounts);

    let output_after = checked_balance(&output, &expected, &OUTPUT)?;
    let received = received_at_least(terms.minimum_received, output_before, output_after)?;
    let input_after = unchecked_balance(&input);
    let spent = spent_at_most(terms.maximum_spent, input_before, input_after)?;

    let (user, pool) = (accounts.at(at::USER), accounts.at(at::POOL_STATE));
    record(user.address(), pool.address(), terms.exact, spent, received);
    Ok(())
}

/// The exchange's list.
#[inline(always)]
fn listed(accounts: &Accounts<'_, ACCOUNTS>) -> [Listed; LISTED] {
    [
        Listed::signer(accounts.at(at::USER)),
        Listed::readonly(accounts.at(at::AUTHORITY)),
        Listed::readonly(accounts.at(at::AMM_CONFIG)),
        Listed::writable(accounts.at(at::POOL_STATE)),
        Listed::writable(accounts.at(at::INPUT)),
        Listed::writable(accounts.at(at::OUTPUT)),
        Listed::writable(accounts.at(at::INPUT_VAULT)),
        Listed::writable(accounts.at(at::OUTPUT_VAULT)),
        Listed::readonly(accounts.at(at::INPUT_TOKEN_PROGRAM)),
        Listed::readonly(accounts.at(at::OUTPUT_TOKEN_PROGRAM)),
        Listed::readonly(accounts.at(at::INPUT_MINT)),
        Listed::readonly(accounts.at(at::OUTPUT_MINT)),
        Listed::writable(accounts.at(at::OBSERVATION_STATE)),
    ]
}

/// Logs the event and returns the amount that the caller did not fix.
#[inline(always)]
pub fn record(user: &Address, pool: &Address, exact: Exact, spent: u64, received: u64) {
    if !cfg!(feature = "bench-without-event") {
        log_swapped(user, pool, spent, received);
    }
    let answer = match exact {
        Exact::Input => received,
        Exact::Output => spent,
    };
    // Last, because a call into another program would clear it.
    set_return_data(&answer.to_le_bytes());
}

//! One hop: the accounts of `swap` and `swap_exact_out`, each with who checks what, and the order of the checks.

use super::terms::{Exact, Terms};
use crate::{
    constants::EXCHANGE_ID,
    error::{Checked, SwapGuardError, ensure},
    events::log_swapped,
    measure::{
        Expected, OUTPUT, checked_balance, received_at_least, spent_at_most, unchecked_balance,
    },
    runtime::{ExchangeCall, Info, Infos, Listed, SWAP_BASE_INPUT, SWAP_BASE_OUTPUT, Walked},
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

/// A bit for each position whose account must be writable.
pub const WRITTEN: u64 = 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 13;

/// The instruction behind the program's entrypoint: the accounts each for itself, with the framework's codes in its
/// order, and then as behind its dispatcher.
///
/// # Errors
/// `ConstraintDuplicateMutableAccount`, `MissingRequiredSignature`, `ConstraintMut`, `WrongExchange`, then the first
/// check of [`execute`] that fails; a failure of the exchange ends the transaction with its own error.
#[inline(always)]
pub fn serve(walked: &Walked<'_, ACCOUNTS>, terms: &Terms, receiver: Option<&Address>) -> Checked {
    let accounts = [
        walked.account(0),
        walked.account(1),
        walked.account(2),
        walked.account(3),
        walked.account(4),
        walked.account(5),
        walked.account(6),
        walked.account(7),
        walked.account(8),
        walked.account(9),
        walked.account(10),
        walked.account(11),
        walked.account(12),
        walked.account(13),
    ];
    let [user, exchange, ..] = &accounts;
    let [unique, ..] = Swap::MUT_MASK;
    ensure(
        walked.repeated & unique == 0,
        ErrorCode::ConstraintDuplicateMutableAccount,
    )?;
    ensure(user.is_signer(), ProgramError::MissingRequiredSignature)?;
    ensure(walked.are_writable, ErrorCode::ConstraintMut)?;
    ensure(
        address_eq(exchange.address(), &EXCHANGE_ID),
        SwapGuardError::WrongExchange,
    )?;
    let receiver = receiver.unwrap_or(user.address());
    execute(&accounts, walked.infos(), terms, receiver)
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
    execute(&accounts, Infos::empty().fill(&accounts), terms, receiver)
}

/// Check, measure, call, measure, record. The accounts are those of `Swap`, each checked for itself.
#[inline(always)]
fn execute(
    accounts: &[AccountView; ACCOUNTS],
    infos: &[Info],
    terms: &Terms,
    receiver: &Address,
) -> Checked {
    let [
        user,
        _,
        authority,
        amm_config,
        pool_state,
        input,
        output,
        input_vault,
        output_vault,
        input_token_program,
        output_token_program,
        input_mint,
        output_mint,
        observation_state,
    ] = accounts;
    terms.check_amounts()?;
    ensure(
        !address_eq(input.address(), output.address()),
        SwapGuardError::SameTokenAccount,
    )?;
    terms.check_expiry()?;
    let expected = Expected {
        mint: output_mint.address(),
        owner: receiver,
    };
    let output_before = checked_balance(output, &expected, &OUTPUT)?;
    let input_before = unchecked_balance(input);

    let exchange = ExchangeCall {
        list: [
            Listed::signer(user),
            Listed::readonly(authority),
            Listed::readonly(amm_config),
            Listed::writable(pool_state),
            Listed::writable(input),
            Listed::writable(output),
            Listed::writable(input_vault),
            Listed::writable(output_vault),
            Listed::readonly(input_token_program),
            Listed::readonly(output_token_program),
            Listed::readonly(input_mint),
            Listed::readonly(output_mint),
            Listed::writable(observation_state),
        ],
        infos,
    };
    match terms.exact {
        // Asked for no minimum: the guard compares what arrived, so that falling short is always its own error.
        Exact::Input => exchange.invoke(SWAP_BASE_INPUT, terms.maximum_spent, 0),
        // Told the maximum: past it, the exchange refuses before anything moves.
        Exact::Output => exchange.invoke(
            SWAP_BASE_OUTPUT,
            terms.maximum_spent,
            terms.minimum_received,
        ),
    }

    let output_after = checked_balance(output, &expected, &OUTPUT)?;
    let received = received_at_least(terms.minimum_received, output_before, output_after)?;
    let input_after = unchecked_balance(input);
    let spent = spent_at_most(terms.maximum_spent, input_before, input_after)?;

    let pool = pool_state.address();
    record(user.address(), pool, terms.exact, spent, received);
    Ok(())
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

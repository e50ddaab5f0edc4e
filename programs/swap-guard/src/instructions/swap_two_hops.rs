//! Two hops: the accounts of `swap_two_hops`, each with who checks what, and the order of the checks.

use super::{swap::record, terms::Terms};
use crate::{
    constants::EXCHANGE_ID,
    error::{Checked, SwapGuardError, ensure},
    measure::{
        Expected, MIDDLE, OUTPUT, checked_balance, delivered, middle_kept, received_at_least,
        spent_at_most, unchecked_balance,
    },
    runtime::{ExchangeCall, Info, Infos, Listed, SWAP_BASE_INPUT, Walked},
};
use anchor_lang::{ErrorCode, TryAccounts, address_eq, prelude::*};

/// The accounts of two of the exchange's swaps, of which the first pays into the account that the second takes from.
///
/// "The exchange checks" names a check that Raydium CPMM makes in `swap_base_input`, as in `Swap`. Configurations and
/// token programs may repeat each other. The two pools and the input, middle and output accounts are exempt from the
/// framework's refusal of repeated writable accounts, so that repeating them is answered with the guard's own errors; the
/// exchange refuses a pool that is a token account.
#[derive(Accounts)]
pub struct SwapTwoHops {
    /// Pays the input, owns the middle account, and the output unless another receiver is stated. Checked here: signed.
    pub user: Signer,
    /// Checked here: the pinned address. The runtime checks that it is executable.
    #[account(address = EXCHANGE_ID @ SwapGuardError::WrongExchange)]
    pub exchange_program: UncheckedAccount,
    /// The exchange checks: its own derived address.
    pub authority: UncheckedAccount,
    /// The exchange checks: named by the first pool, its own account, of the right kind.
    pub first_amm_config: UncheckedAccount,
    /// Checked here: not the second pool. The exchange checks: its own account, of the right kind.
    #[account(unsafe(dup))]
    pub first_pool_state: UncheckedAccount,
    /// Checked here: not the middle or the output account. The token program checks that the user may spend from it.
    #[account(unsafe(dup))]
    pub input_token_account: UncheckedAccount,
    /// Checked here, before the first hop and after the second: a token account of the middle mint, owned by the user,
    /// that does not hold less than before.
    #[account(unsafe(dup))]
    pub middle_token_account: UncheckedAccount,
    /// Checked here, before the first hop and after the second: a token account of the output mint, owned by the user or
    /// the stated receiver. The token program checks that it is not frozen.
    #[account(unsafe(dup))]
    pub output_token_account: UncheckedAccount,
    /// The exchange checks: one of the first pool's two vaults.
    #[account(mut)]
    pub first_input_vault: UncheckedAccount,
    /// The exchange checks: the other one of the first pool's two vaults.
    #[account(mut)]
    pub first_output_vault: UncheckedAccount,
    /// The exchange checks: named by the first pool, its own account, of the right kind.
    #[account(mut)]
    pub first_observation_state: UncheckedAccount,
    /// The exchange checks: named by the second pool, its own account, of the right kind.
    pub second_amm_config: UncheckedAccount,
    /// Checked here: not the first pool. The exchange checks: its own account, of the right kind.
    #[account(unsafe(dup))]
    pub second_pool_state: UncheckedAccount,
    /// The exchange checks: one of the second pool's two vaults.
    #[account(mut)]
    pub second_input_vault: UncheckedAccount,
    /// The exchange checks: the other one of the second pool's two vaults.
    #[account(mut)]
    pub second_output_vault: UncheckedAccount,
    /// The exchange checks: named by the second pool, its own account, of the right kind.
    #[account(mut)]
    pub second_observation_state: UncheckedAccount,
    /// The exchange checks: SPL Token or Token-2022.
    pub input_token_program: UncheckedAccount,
    /// The exchange checks: SPL Token or Token-2022.
    pub middle_token_program: UncheckedAccount,
    /// The exchange checks: SPL Token or Token-2022.
    pub output_token_program: UncheckedAccount,
    /// The exchange checks: the mint of the first input vault.
    pub input_mint: UncheckedAccount,
    /// The exchange checks: the mint of the first output vault and of the second input vault. The guard compares the
    /// middle account with it.
    pub middle_mint: UncheckedAccount,
    /// The exchange checks: the mint of the second output vault. The guard compares the output account with it.
    pub output_mint: UncheckedAccount,
}

/// How many accounts there are.
pub const ACCOUNTS: usize = <SwapTwoHops as TryAccounts>::HEADER_SIZE;

/// A bit for each position whose account must be writable: those from the first pool to the second observation, but for
/// the second configuration.
pub const WRITTEN: u64 = 0b1111_0111_1111_0000;

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
        walked.account(14),
        walked.account(15),
        walked.account(16),
        walked.account(17),
        walked.account(18),
        walked.account(19),
        walked.account(20),
        walked.account(21),
    ];
    let [user, exchange, ..] = &accounts;
    let [unique, ..] = SwapTwoHops::MUT_MASK;
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
pub fn handler(accounts: &SwapTwoHops, terms: &Terms, receiver: &Address) -> Checked {
    let accounts = [
        *accounts.user.account(),
        *accounts.exchange_program.account(),
        *accounts.authority.account(),
        *accounts.first_amm_config.account(),
        *accounts.first_pool_state.account(),
        *accounts.input_token_account.account(),
        *accounts.middle_token_account.account(),
        *accounts.output_token_account.account(),
        *accounts.first_input_vault.account(),
        *accounts.first_output_vault.account(),
        *accounts.first_observation_state.account(),
        *accounts.second_amm_config.account(),
        *accounts.second_pool_state.account(),
        *accounts.second_input_vault.account(),
        *accounts.second_output_vault.account(),
        *accounts.second_observation_state.account(),
        *accounts.input_token_program.account(),
        *accounts.middle_token_program.account(),
        *accounts.output_token_program.account(),
        *accounts.input_mint.account(),
        *accounts.middle_mint.account(),
        *accounts.output_mint.account(),
    ];
    execute(&accounts, Infos::empty().fill(&accounts), terms, receiver)
}

/// Deltas of one account in two roles would mix, and a pool traded with twice only takes fees.
#[inline(always)]
fn check_identities(
    [input, middle, output]: [&AccountView; 3],
    [first_pool, second_pool]: [&AccountView; 2],
) -> Checked {
    for (one, other) in [(input, middle), (input, output), (middle, output)] {
        ensure(
            !address_eq(one.address(), other.address()),
            SwapGuardError::SameTokenAccount,
        )?;
    }
    ensure(
        !address_eq(first_pool.address(), second_pool.address()),
        SwapGuardError::SamePool,
    )?;
    Ok(())
}

/// Check, measure, call, measure what was delivered, call with exactly that, measure, record. The accounts are those of
/// `SwapTwoHops`, each checked for itself.
///
/// Neither call is asked for a minimum: what counts is what the user ends up with.
#[inline(always)]
fn execute(
    accounts: &[AccountView; ACCOUNTS],
    infos: &[Info],
    terms: &Terms,
    receiver: &Address,
) -> Checked {
    let [user, _, _, _, first_pool, input, middle, output, ..] = accounts;
    let [
        ..,
        second_pool,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        middle_mint,
        output_mint,
    ] = accounts;
    terms.check_amounts()?;
    check_identities([input, middle, output], [first_pool, second_pool])?;
    terms.check_expiry()?;
    let of_middle = Expected {
        mint: middle_mint.address(),
        owner: user.address(),
    };
    let of_output = Expected {
        mint: output_mint.address(),
        owner: receiver,
    };
    let input_before = unchecked_balance(input);
    let middle_before = checked_balance(middle, &of_middle, &MIDDLE)?;
    let output_before = checked_balance(output, &of_output, &OUTPUT)?;

    first_hop(accounts, infos).invoke(SWAP_BASE_INPUT, terms.maximum_spent, 0);
    let delivered = delivered(middle_before, unchecked_balance(middle))?;
    second_hop(accounts, infos).invoke(SWAP_BASE_INPUT, delivered, 0);

    let output_after = checked_balance(output, &of_output, &OUTPUT)?;
    let received = received_at_least(terms.minimum_received, output_before, output_after)?;
    let input_after = unchecked_balance(input);
    let spent = spent_at_most(terms.maximum_spent, input_before, input_after)?;
    let middle_after = checked_balance(middle, &of_middle, &MIDDLE)?;
    middle_kept(middle_before, middle_after)?;

    let pool = second_pool.address();
    record(user.address(), pool, terms.exact, spent, received);
    Ok(())
}

/// The exchange's list for the swap from the input to the middle account.
#[inline(always)]
fn first_hop<'a>(accounts: &'a [AccountView; ACCOUNTS], infos: &'a [Info]) -> ExchangeCall<'a> {
    let [
        user,
        _,
        authority,
        amm_config,
        pool_state,
        input,
        middle,
        ..,
    ] = accounts;
    let [
        ..,
        input_vault,
        output_vault,
        observation_state,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
    ] = accounts;
    let [
        ..,
        input_token_program,
        middle_token_program,
        _,
        input_mint,
        middle_mint,
        _,
    ] = accounts;
    ExchangeCall {
        list: [
            Listed::signer(user),
            Listed::readonly(authority),
            Listed::readonly(amm_config),
            Listed::writable(pool_state),
            Listed::writable(input),
            Listed::writable(middle),
            Listed::writable(input_vault),
            Listed::writable(output_vault),
            Listed::readonly(input_token_program),
            Listed::readonly(middle_token_program),
            Listed::readonly(input_mint),
            Listed::readonly(middle_mint),
            Listed::writable(observation_state),
        ],
        infos,
    }
}

/// The exchange's list for the swap from the middle to the output account.
#[inline(always)]
fn second_hop<'a>(accounts: &'a [AccountView; ACCOUNTS], infos: &'a [Info]) -> ExchangeCall<'a> {
    let [user, _, authority, _, _, _, middle, output, ..] = accounts;
    let [
        ..,
        amm_config,
        pool_state,
        input_vault,
        output_vault,
        observation_state,
        _,
        middle_token_program,
        output_token_program,
        _,
        middle_mint,
        output_mint,
    ] = accounts;
    ExchangeCall {
        list: [
            Listed::signer(user),
            Listed::readonly(authority),
            Listed::readonly(amm_config),
            Listed::writable(pool_state),
            Listed::writable(middle),
            Listed::writable(output),
            Listed::writable(input_vault),
            Listed::writable(output_vault),
            Listed::readonly(middle_token_program),
            Listed::readonly(output_token_program),
            Listed::readonly(middle_mint),
            Listed::readonly(output_mint),
            Listed::writable(observation_state),
        ],
        infos,
    }
}

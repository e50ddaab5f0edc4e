//! Two hops: the accounts of `swap_two_hops`, each with who checks what, and the order of the checks.

use super::{swap::record, terms::Terms};
use crate::{
    constants::EXCHANGE_ID,
    error::{Checked, SwapGuardError, ensure},
    measure::{
        Expected, MIDDLE, OUTPUT, checked_balance, delivered, middle_kept, received_at_least,
        spent_at_most, unchecked_balance,
    },
    runtime::{Accounts, ExchangeCall, LISTED, Listed, Room, SWAP_BASE_INPUT, SwapData},
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

/// Positions of the accounts in the list.
mod at {
    pub const USER: usize = 0;
    pub const EXCHANGE_PROGRAM: usize = 1;
    pub const AUTHORITY: usize = 2;
    pub const FIRST_AMM_CONFIG: usize = 3;
    pub const FIRST_POOL_STATE: usize = 4;
    pub const INPUT: usize = 5;
    pub const MIDDLE: usize = 6;
    pub const OUTPUT: usize = 7;
    pub const FIRST_INPUT_VAULT: usize = 8;
    pub const FIRST_OUTPUT_VAULT: usize = 9;
    pub const FIRST_OBSERVATION_STATE: usize = 10;
    pub const SECOND_AMM_CONFIG: usize = 11;
    pub const SECOND_POOL_STATE: usize = 12;
    pub const SECOND_INPUT_VAULT: usize = 13;
    pub const SECOND_OUTPUT_VAULT: usize = 14;
    pub const SECOND_OBSERVATION_STATE: usize = 15;
    pub const INPUT_TOKEN_PROGRAM: usize = 16;
    pub const MIDDLE_TOKEN_PROGRAM: usize = 17;
    pub const OUTPUT_TOKEN_PROGRAM: usize = 18;
    pub const INPUT_MINT: usize = 19;
    pub const MIDDLE_MINT: usize = 20;
    pub const OUTPUT_MINT: usize = 21;
}

/// Positions whose account must be writable.
const WRITTEN: [usize; 11] = [
    at::FIRST_POOL_STATE,
    at::INPUT,
    at::MIDDLE,
    at::OUTPUT,
    at::FIRST_INPUT_VAULT,
    at::FIRST_OUTPUT_VAULT,
    at::FIRST_OBSERVATION_STATE,
    at::SECOND_POOL_STATE,
    at::SECOND_INPUT_VAULT,
    at::SECOND_OUTPUT_VAULT,
    at::SECOND_OBSERVATION_STATE,
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
    let [unique, ..] = SwapTwoHops::MUT_MASK;
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
    execute(&Room::empty().fill(&accounts), terms, receiver)
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
fn execute(accounts: &Accounts<'_, ACCOUNTS>, terms: &Terms, receiver: &Address) -> Checked {
    let [input, middle, output] = [at::INPUT, at::MIDDLE, at::OUTPUT].map(|at| accounts.at(at));
    let pools = [at::FIRST_POOL_STATE, at::SECOND_POOL_STATE].map(|at| accounts.at(at));
    terms.check_amounts()?;
    check_identities([&input, &middle, &output], pools.each_ref())?;
    terms.check_expiry()?;
    let user = accounts.at(at::USER);
    let [middle_mint, output_mint] = [at::MIDDLE_MINT, at::OUTPUT_MINT].map(|at| accounts.at(at));
    let of_middle = Expected {
        mint: middle_mint.address(),
        owner: user.address(),
    };
    let of_output = Expected {
        mint: output_mint.address(),
        owner: receiver,
    };
    let input_before = unchecked_balance(&input);
    let middle_before = checked_balance(&middle, &of_middle, &MIDDLE)?;
    let output_before = checked_balance(&output, &of_output, &OUTPUT)?;

    let mut data = SwapData {
        discriminator: SWAP_BASE_INPUT,
        amounts: [terms.maximum_spent, 0].map(u64::to_le_bytes),
    };
    let mut listed = first_hop(accounts);
    let call = ExchangeCall::new(&mut listed, &mut data);
    call.invoke(accounts);
    let delivered = delivered(middle_before, unchecked_balance(&middle))?;
    second_hop(accounts, call.accounts);
    call.data.amounts[0] = delivered.to_le_bytes();
    call.invoke(accounts);

    let output_after = checked_balance(&output, &of_output, &OUTPUT)?;
    let received = received_at_least(terms.minimum_received, output_before, output_after)?;
    let input_after = unchecked_balance(&input);
    let spent = spent_at_most(terms.maximum_spent, input_before, input_after)?;
    let middle_after = checked_balance(&middle, &of_middle, &MIDDLE)?;
    middle_kept(middle_before, middle_after)?;

    let [_, second_pool] = pools;
    record(
        user.address(),
        second_pool.address(),
        terms.exact,
        spent,
        received,
    );
    Ok(())
}

/// The exchange's list for the swap from the input to the middle account.
#[inline(always)]
fn first_hop(accounts: &Accounts<'_, ACCOUNTS>) -> [Listed; LISTED] {
    [
        Listed::signer(accounts.at(at::USER)),
        Listed::readonly(accounts.at(at::AUTHORITY)),
        Listed::readonly(accounts.at(at::FIRST_AMM_CONFIG)),
        Listed::writable(accounts.at(at::FIRST_POOL_STATE)),
        Listed::writable(accounts.at(at::INPUT)),
        Listed::writable(accounts.at(at::MIDDLE)),
        Listed::writable(accounts.at(at::FIRST_INPUT_VAULT)),
        Listed::writable(accounts.at(at::FIRST_OUTPUT_VAULT)),
        Listed::readonly(accounts.at(at::INPUT_TOKEN_PROGRAM)),
        Listed::readonly(accounts.at(at::MIDDLE_TOKEN_PROGRAM)),
        Listed::readonly(accounts.at(at::INPUT_MINT)),
        Listed::readonly(accounts.at(at::MIDDLE_MINT)),
        Listed::writable(accounts.at(at::FIRST_OBSERVATION_STATE)),
    ]
}

/// Makes the list of the first hop that for the swap from the middle to the output account. User and authority stay.
#[inline(always)]
fn second_hop(accounts: &Accounts<'_, ACCOUNTS>, listed: &mut [Listed; LISTED]) {
    let [
        _,
        _,
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
    ] = listed;
    amm_config.replace(accounts.at(at::SECOND_AMM_CONFIG));
    pool_state.replace(accounts.at(at::SECOND_POOL_STATE));
    input.replace(accounts.at(at::MIDDLE));
    output.replace(accounts.at(at::OUTPUT));
    input_vault.replace(accounts.at(at::SECOND_INPUT_VAULT));
    output_vault.replace(accounts.at(at::SECOND_OUTPUT_VAULT));
    input_token_program.replace(accounts.at(at::MIDDLE_TOKEN_PROGRAM));
    output_token_program.replace(accounts.at(at::OUTPUT_TOKEN_PROGRAM));
    input_mint.replace(accounts.at(at::MIDDLE_MINT));
    output_mint.replace(accounts.at(at::OUTPUT_MINT));
    observation_state.replace(accounts.at(at::SECOND_OBSERVATION_STATE));
}

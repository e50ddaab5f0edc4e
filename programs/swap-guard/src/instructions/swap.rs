//! Instruction `swap`: its accounts, each with who checks what, and the order of the checks.

use crate::{
    constants::EXCHANGE_ID,
    error::SwapGuardError,
    events::GuardedSwap,
    exchange,
    received::{Expected, checked_output_balance, input_balance, received_at_least, spent_at_most},
};
use anchor_lang::{
    address_eq,
    pinocchio::{
        cpi::set_return_data,
        sysvars::{clock::CLOCK_ID, get_sysvar},
    },
    prelude::*,
};

/// The `expiry_slot` of a swap that never expires.
pub const NO_EXPIRY: u64 = 0;

/// What the user signs for. Amounts are in the smallest unit of their token.
#[derive(Clone, Copy)]
pub struct SwapArgs {
    /// Exactly what is offered to the exchange, before the input mint's transfer fee.
    pub amount_in: u64,
    /// The least that must arrive, after the output mint's transfer fee.
    pub minimum_out: u64,
    /// The last slot in which the swap may execute, or [`NO_EXPIRY`].
    pub expiry_slot: u64,
}

/// The exchange's thirteen accounts in its own order, with the exchange's program inserted as the second.
///
/// "The exchange checks" names a check that Raydium CPMM makes in `swap_base_input`; it is relied upon because the
/// program id is pinned, and because nothing it could let through escapes the two balance comparisons.
#[derive(Accounts)]
pub struct Swap {
    /// Pays the input and owns the output. Checked here: signed.
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
    /// Checked here, before and after the exchange: a token account of the output mint, owned by the user. The
    /// exchange does not check the owner. The token program checks that it is not frozen.
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

/// Parse is done by the framework; here: check, measure, call, measure, record.
pub fn handler(accounts: &Swap, args: SwapArgs) -> Result<()> {
    validate(accounts, args)?;
    let slot = slot_before_expiry(args.expiry_slot)?;
    let output_before = output_balance(accounts)?;
    let input_before = input_balance(accounts.input_token_account.account());

    exchange::swap_base_input(accounts, args.amount_in);

    let received = received_at_least(args.minimum_out, output_before, output_balance(accounts)?)?;
    let input_after = input_balance(accounts.input_token_account.account());
    spent_at_most(args.amount_in, input_before, input_after)?;

    record(accounts, args, received, slot);
    Ok(())
}

fn validate(accounts: &Swap, args: SwapArgs) -> Result<()> {
    require!(args.amount_in != 0, SwapGuardError::ZeroAmountIn);
    require!(args.minimum_out != 0, SwapGuardError::ZeroMinimumOut);
    require!(
        !address_eq(
            accounts.input_token_account.address(),
            accounts.output_token_account.address()
        ),
        SwapGuardError::SameTokenAccount
    );
    Ok(())
}

fn output_balance(accounts: &Swap) -> core::result::Result<u64, SwapGuardError> {
    checked_output_balance(
        accounts.output_token_account.account(),
        &Expected {
            mint: accounts.output_mint.address(),
            owner: accounts.user.address(),
        },
    )
}

/// The current slot, if the swap may still execute in it.
///
/// It is read whether the swap expires or not, because the event names it; it does not change within a transaction.
fn slot_before_expiry(expiry_slot: u64) -> Result<u64> {
    if cfg!(feature = "bench-without-event") && expiry_slot == NO_EXPIRY {
        // Nobody will be told.
        return Ok(0);
    }
    let slot = current_slot()?;
    require!(
        expiry_slot == NO_EXPIRY || slot <= expiry_slot,
        SwapGuardError::Expired
    );
    Ok(slot)
}

/// The slot alone: asking the runtime for eight bytes is cheaper than for the whole clock.
fn current_slot() -> Result<u64> {
    /// The clock starts with the slot.
    const SLOT_OFFSET: usize = 0;
    let mut slot = [0; 8];
    get_sysvar(&mut slot, &CLOCK_ID, SLOT_OFFSET)?;
    Ok(u64::from_le_bytes(slot))
}

fn record(accounts: &Swap, args: SwapArgs, received: u64, slot: u64) {
    let event = GuardedSwap {
        user: *accounts.user.address(),
        pool: *accounts.pool_state.address(),
        input_mint: *accounts.input_mint.address(),
        output_mint: *accounts.output_mint.address(),
        amount_in: args.amount_in,
        minimum_out: args.minimum_out,
        received,
        slot,
    };
    if !cfg!(feature = "bench-without-event") {
        event.log();
    }
    // Last, because a call into another program would clear it.
    set_return_data(&received.to_le_bytes());
}

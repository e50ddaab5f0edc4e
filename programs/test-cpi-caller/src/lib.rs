//! Test program that owns tokens through a derived address and swaps them through the guard.
//! A vault, a treasury or a trading bot on the chain would do the same.
//!
//! It is written against the guard's `cpi` feature and against nothing else of the guard.
#![cfg_attr(target_os = "solana", no_std)]

use anchor_lang::{address_eq, pinocchio::cpi::get_return_data, prelude::*};
use swap_guard::cpi::accounts::Swap;

// Under upstream BPF these supply what the official toolchain builds in; unnamed, they would not be linked.
#[cfg(target_arch = "bpf")]
use {bpf_libcalls as _, solana_compiler_builtins as _};

// The SHA-256 of `cpi caller`.
declare_id!("8agiPF5s9o15hG66Xp39jMNWooDhNd3y1uEY8YURsax4");

/// Seed of the address that owns the tokens.
pub const HOLDER_SEED: &[u8] = b"holder";

/// Why the program refuses.
#[error_code]
#[derive(Debug, PartialEq, Eq)]
pub enum CallerError {
    #[msg("The guard did not say what was received")]
    NoAnswer, // 6000
}

/// The guard, and the guard's accounts in its own order, with the holder as the user.
#[derive(Accounts)]
pub struct SwapHeld {
    #[account(address = swap_guard::ID)]
    pub guard: UncheckedAccount,
    /// Owns the token accounts; signs by its seed.
    #[account(seeds = [HOLDER_SEED], bump)]
    pub holder: UncheckedAccount,
    pub exchange_program: UncheckedAccount,
    pub authority: UncheckedAccount,
    pub amm_config: UncheckedAccount,
    #[account(mut)]
    pub pool_state: UncheckedAccount,
    #[account(mut)]
    pub input_token_account: UncheckedAccount,
    #[account(mut)]
    pub output_token_account: UncheckedAccount,
    #[account(mut)]
    pub input_vault: UncheckedAccount,
    #[account(mut)]
    pub output_vault: UncheckedAccount,
    pub input_token_program: UncheckedAccount,
    pub output_token_program: UncheckedAccount,
    pub input_mint: UncheckedAccount,
    pub output_mint: UncheckedAccount,
    #[account(mut)]
    pub observation_state: UncheckedAccount,
}

#[program]
pub mod cpi_caller {
    use super::*;

    /// Swaps the holder's tokens through the guard and returns what the guard says was received.
    ///
    /// Anybody may call it, with any minimum above zero: it guards nothing itself.
    pub fn swap_held(
        ctx: &mut Context<SwapHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
    ) -> Result<u64> {
        let bump = [ctx.bumps.holder];
        let seeds: &[&[u8]] = &[HOLDER_SEED, &bump];
        swap(
            &mut ctx.accounts,
            &[seeds],
            [amount_in, minimum_out, expiry_slot],
        )?;
        received()
    }
}

fn swap(
    accounts: &mut SwapHeld,
    signer_seeds: &[&[&[u8]]],
    [amount_in, minimum_out, expiry_slot]: [u64; 3],
) -> Result<()> {
    let guarded = Swap {
        user: accounts.holder.cpi_handle(),
        exchange_program: accounts.exchange_program.cpi_handle(),
        authority: accounts.authority.cpi_handle(),
        amm_config: accounts.amm_config.cpi_handle(),
        pool_state: accounts.pool_state.cpi_handle_mut(),
        input_token_account: accounts.input_token_account.cpi_handle_mut(),
        output_token_account: accounts.output_token_account.cpi_handle_mut(),
        input_vault: accounts.input_vault.cpi_handle_mut(),
        output_vault: accounts.output_vault.cpi_handle_mut(),
        input_token_program: accounts.input_token_program.cpi_handle(),
        output_token_program: accounts.output_token_program.cpi_handle(),
        input_mint: accounts.input_mint.cpi_handle(),
        output_mint: accounts.output_mint.cpi_handle(),
        observation_state: accounts.observation_state.cpi_handle_mut(),
    };
    let context = CpiContext::new_with_signer(accounts.guard.address(), guarded, signer_seeds);
    swap_guard::cpi::swap(context, amount_in, minimum_out, expiry_slot)
}

/// The guard's return data, once it is sure to be the guard's.
fn received() -> Result<u64> {
    let answer = get_return_data()
        .filter(|data| address_eq(data.program_id(), &swap_guard::ID))
        .ok_or(CallerError::NoAnswer)?;
    let bytes: [u8; 8] = answer
        .as_slice()
        .try_into()
        .map_err(|_| CallerError::NoAnswer)?;
    Ok(u64::from_le_bytes(bytes))
}

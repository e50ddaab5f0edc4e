//! Test program that owns tokens through a derived address and swaps them through the guard.
//! A vault, a treasury or a trading bot on the chain would do the same.
//!
//! It is written against the guard's `cpi` feature and against nothing else of the guard.
#![cfg_attr(target_os = "solana", no_std)]

use anchor_lang::{address_eq, pinocchio::cpi::get_return_data, prelude::*};
use swap_guard::cpi::accounts::{Swap, SwapTwoHops};

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
    #[msg("The guard did not say what was received or spent")]
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

/// The same for two hops.
#[derive(Accounts)]
pub struct SwapTwoHopsHeld {
    #[account(address = swap_guard::ID)]
    pub guard: UncheckedAccount,
    /// Owns the token accounts; signs by its seed.
    #[account(seeds = [HOLDER_SEED], bump)]
    pub holder: UncheckedAccount,
    pub exchange_program: UncheckedAccount,
    pub authority: UncheckedAccount,
    pub first_amm_config: UncheckedAccount,
    #[account(mut)]
    pub first_pool_state: UncheckedAccount,
    #[account(mut)]
    pub input_token_account: UncheckedAccount,
    #[account(mut)]
    pub middle_token_account: UncheckedAccount,
    #[account(mut)]
    pub output_token_account: UncheckedAccount,
    #[account(mut)]
    pub first_input_vault: UncheckedAccount,
    #[account(mut)]
    pub first_output_vault: UncheckedAccount,
    #[account(mut)]
    pub first_observation_state: UncheckedAccount,
    pub second_amm_config: UncheckedAccount,
    #[account(mut)]
    pub second_pool_state: UncheckedAccount,
    #[account(mut)]
    pub second_input_vault: UncheckedAccount,
    #[account(mut)]
    pub second_output_vault: UncheckedAccount,
    #[account(mut)]
    pub second_observation_state: UncheckedAccount,
    pub input_token_program: UncheckedAccount,
    pub middle_token_program: UncheckedAccount,
    pub output_token_program: UncheckedAccount,
    pub input_mint: UncheckedAccount,
    pub middle_mint: UncheckedAccount,
    pub output_mint: UncheckedAccount,
}

#[program]
pub mod cpi_caller {
    use super::*;

    /// Swaps the holder's tokens through the guard and returns what the guard says was received.
    ///
    /// Anybody may call it, with any minimum above zero: it guards nothing itself. So it is with all of these.
    pub fn swap_held(
        ctx: &mut Context<SwapHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
    ) -> Result<u64> {
        let bump = [ctx.bumps.holder];
        let signer_seeds: &[&[&[u8]]] = &[&[HOLDER_SEED, &bump]];
        let guard = *ctx.accounts.guard.address();
        let context = CpiContext::new_with_signer(&guard, ctx.accounts.guarded(), signer_seeds);
        swap_guard::cpi::swap(context, amount_in, minimum_out, expiry_slot)?;
        answer()
    }

    /// As `swap_held`, for an exact output, and returns what the guard says was spent.
    pub fn swap_exact_out_held(
        ctx: &mut Context<SwapHeld>,
        maximum_in: u64,
        amount_out: u64,
        expiry_slot: u64,
    ) -> Result<u64> {
        let bump = [ctx.bumps.holder];
        let signer_seeds: &[&[&[u8]]] = &[&[HOLDER_SEED, &bump]];
        let guard = *ctx.accounts.guard.address();
        let context = CpiContext::new_with_signer(&guard, ctx.accounts.guarded(), signer_seeds);
        swap_guard::cpi::swap_exact_out(context, maximum_in, amount_out, expiry_slot)?;
        answer()
    }

    /// As `swap_held`, through two pools.
    pub fn swap_two_hops_held(
        ctx: &mut Context<SwapTwoHopsHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
    ) -> Result<u64> {
        let bump = [ctx.bumps.holder];
        let signer_seeds: &[&[&[u8]]] = &[&[HOLDER_SEED, &bump]];
        let guard = *ctx.accounts.guard.address();
        let context = CpiContext::new_with_signer(&guard, ctx.accounts.guarded(), signer_seeds);
        swap_guard::cpi::swap_two_hops(context, amount_in, minimum_out, expiry_slot)?;
        answer()
    }

    /// As `swap_held`, into an account of `receiver`.
    pub fn swap_held_to(
        ctx: &mut Context<SwapHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
        receiver: Address,
    ) -> Result<u64> {
        let bump = [ctx.bumps.holder];
        let signer_seeds: &[&[&[u8]]] = &[&[HOLDER_SEED, &bump]];
        let guard = *ctx.accounts.guard.address();
        let context = CpiContext::new_with_signer(&guard, ctx.accounts.guarded(), signer_seeds);
        swap_guard::cpi::swap_to(context, amount_in, minimum_out, expiry_slot, receiver)?;
        answer()
    }

    /// As `swap_exact_out_held`, into an account of `receiver`.
    pub fn swap_exact_out_held_to(
        ctx: &mut Context<SwapHeld>,
        maximum_in: u64,
        amount_out: u64,
        expiry_slot: u64,
        receiver: Address,
    ) -> Result<u64> {
        let bump = [ctx.bumps.holder];
        let signer_seeds: &[&[&[u8]]] = &[&[HOLDER_SEED, &bump]];
        let guard = *ctx.accounts.guard.address();
        let context = CpiContext::new_with_signer(&guard, ctx.accounts.guarded(), signer_seeds);
        swap_guard::cpi::swap_exact_out_to(context, maximum_in, amount_out, expiry_slot, receiver)?;
        answer()
    }

    /// As `swap_two_hops_held`, into an account of `receiver`.
    pub fn swap_two_hops_held_to(
        ctx: &mut Context<SwapTwoHopsHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
        receiver: Address,
    ) -> Result<u64> {
        let bump = [ctx.bumps.holder];
        let signer_seeds: &[&[&[u8]]] = &[&[HOLDER_SEED, &bump]];
        let guard = *ctx.accounts.guard.address();
        let context = CpiContext::new_with_signer(&guard, ctx.accounts.guarded(), signer_seeds);
        swap_guard::cpi::swap_two_hops_to(context, amount_in, minimum_out, expiry_slot, receiver)?;
        answer()
    }
}

impl SwapHeld {
    fn guarded(&mut self) -> Swap<'_> {
        Swap {
            user: self.holder.cpi_handle(),
            exchange_program: self.exchange_program.cpi_handle(),
            authority: self.authority.cpi_handle(),
            amm_config: self.amm_config.cpi_handle(),
            pool_state: self.pool_state.cpi_handle_mut(),
            input_token_account: self.input_token_account.cpi_handle_mut(),
            output_token_account: self.output_token_account.cpi_handle_mut(),
            input_vault: self.input_vault.cpi_handle_mut(),
            output_vault: self.output_vault.cpi_handle_mut(),
            input_token_program: self.input_token_program.cpi_handle(),
            output_token_program: self.output_token_program.cpi_handle(),
            input_mint: self.input_mint.cpi_handle(),
            output_mint: self.output_mint.cpi_handle(),
            observation_state: self.observation_state.cpi_handle_mut(),
        }
    }
}

impl SwapTwoHopsHeld {
    fn guarded(&mut self) -> SwapTwoHops<'_> {
        SwapTwoHops {
            user: self.holder.cpi_handle(),
            exchange_program: self.exchange_program.cpi_handle(),
            authority: self.authority.cpi_handle(),
            first_amm_config: self.first_amm_config.cpi_handle(),
            first_pool_state: self.first_pool_state.cpi_handle_mut(),
            input_token_account: self.input_token_account.cpi_handle_mut(),
            middle_token_account: self.middle_token_account.cpi_handle_mut(),
            output_token_account: self.output_token_account.cpi_handle_mut(),
            first_input_vault: self.first_input_vault.cpi_handle_mut(),
            first_output_vault: self.first_output_vault.cpi_handle_mut(),
            first_observation_state: self.first_observation_state.cpi_handle_mut(),
            second_amm_config: self.second_amm_config.cpi_handle(),
            second_pool_state: self.second_pool_state.cpi_handle_mut(),
            second_input_vault: self.second_input_vault.cpi_handle_mut(),
            second_output_vault: self.second_output_vault.cpi_handle_mut(),
            second_observation_state: self.second_observation_state.cpi_handle_mut(),
            input_token_program: self.input_token_program.cpi_handle(),
            middle_token_program: self.middle_token_program.cpi_handle(),
            output_token_program: self.output_token_program.cpi_handle(),
            input_mint: self.input_mint.cpi_handle(),
            middle_mint: self.middle_mint.cpi_handle(),
            output_mint: self.output_mint.cpi_handle(),
        }
    }
}

/// The guard's return data, once it is sure to be the guard's.
fn answer() -> Result<u64> {
    let answer = get_return_data()
        .filter(|data| address_eq(data.program_id(), &swap_guard::ID))
        .ok_or(CallerError::NoAnswer)?;
    let bytes: [u8; 8] = answer
        .as_slice()
        .try_into()
        .map_err(|_| CallerError::NoAnswer)?;
    Ok(u64::from_le_bytes(bytes))
}

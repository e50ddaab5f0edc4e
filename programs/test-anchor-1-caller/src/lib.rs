//! Test program on Anchor 1: does what `test-cpi-caller` does, knowing the guard from its IDL alone.
//! That is how every program knows it that is older than the guard's framework.

use anchor_lang::{prelude::*, solana_program::program::get_return_data};

// Under upstream BPF these supply what the official toolchain builds in; unnamed, they would not be linked.
#[cfg(target_arch = "bpf")]
use {bpf_libcalls as _, solana_compiler_builtins as _};

// The SHA-256 of `anchor 1 caller`.
declare_id!("2GoJvrPCqu7MhEci3VDFsuajUVB1MbcfzXn3NWpF4LaA");

declare_program!(swap_guard);

/// Seed of the address that owns the tokens.
pub const HOLDER_SEED: &[u8] = b"holder";

/// Why the program refuses.
#[error_code]
pub enum CallerError {
    #[msg("The guard did not say what was received or spent")]
    NoAnswer, // 6000
}

/// The guard, and the guard's accounts in its own order, with the holder as the user.
#[derive(Accounts)]
pub struct SwapHeld<'info> {
    pub guard: Program<'info, swap_guard::program::SwapGuard>,
    /// CHECK: owns the token accounts; signs by its seed.
    #[account(seeds = [HOLDER_SEED], bump)]
    pub holder: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub exchange_program: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub authority: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub amm_config: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub pool_state: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub input_token_account: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub output_token_account: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub input_vault: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub output_vault: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub input_token_program: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub output_token_program: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub input_mint: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub output_mint: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub observation_state: UncheckedAccount<'info>,
}

/// The same for two hops.
#[derive(Accounts)]
pub struct SwapTwoHopsHeld<'info> {
    pub guard: Program<'info, swap_guard::program::SwapGuard>,
    /// CHECK: owns the token accounts; signs by its seed.
    #[account(seeds = [HOLDER_SEED], bump)]
    pub holder: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub exchange_program: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub authority: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub first_amm_config: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub first_pool_state: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub input_token_account: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub middle_token_account: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub output_token_account: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub first_input_vault: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub first_output_vault: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub first_observation_state: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub second_amm_config: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub second_pool_state: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub second_input_vault: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub second_output_vault: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    #[account(mut)]
    pub second_observation_state: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub input_token_program: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub middle_token_program: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub output_token_program: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub input_mint: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub middle_mint: UncheckedAccount<'info>,
    /// CHECK: the guard or the exchange checks it.
    pub output_mint: UncheckedAccount<'info>,
}

/// The guard's accounts of one of its instructions of one hop: the IDL gives each a type of its own.
macro_rules! one_hop {
    ($form:ident, $held:expr) => {
        swap_guard::cpi::accounts::$form {
            user: $held.holder.to_account_info(),
            exchange_program: $held.exchange_program.to_account_info(),
            authority: $held.authority.to_account_info(),
            amm_config: $held.amm_config.to_account_info(),
            pool_state: $held.pool_state.to_account_info(),
            input_token_account: $held.input_token_account.to_account_info(),
            output_token_account: $held.output_token_account.to_account_info(),
            input_vault: $held.input_vault.to_account_info(),
            output_vault: $held.output_vault.to_account_info(),
            input_token_program: $held.input_token_program.to_account_info(),
            output_token_program: $held.output_token_program.to_account_info(),
            input_mint: $held.input_mint.to_account_info(),
            output_mint: $held.output_mint.to_account_info(),
            observation_state: $held.observation_state.to_account_info(),
        }
    };
}

/// The same of two hops.
macro_rules! two_hops {
    ($form:ident, $held:expr) => {
        swap_guard::cpi::accounts::$form {
            user: $held.holder.to_account_info(),
            exchange_program: $held.exchange_program.to_account_info(),
            authority: $held.authority.to_account_info(),
            first_amm_config: $held.first_amm_config.to_account_info(),
            first_pool_state: $held.first_pool_state.to_account_info(),
            input_token_account: $held.input_token_account.to_account_info(),
            middle_token_account: $held.middle_token_account.to_account_info(),
            output_token_account: $held.output_token_account.to_account_info(),
            first_input_vault: $held.first_input_vault.to_account_info(),
            first_output_vault: $held.first_output_vault.to_account_info(),
            first_observation_state: $held.first_observation_state.to_account_info(),
            second_amm_config: $held.second_amm_config.to_account_info(),
            second_pool_state: $held.second_pool_state.to_account_info(),
            second_input_vault: $held.second_input_vault.to_account_info(),
            second_output_vault: $held.second_output_vault.to_account_info(),
            second_observation_state: $held.second_observation_state.to_account_info(),
            input_token_program: $held.input_token_program.to_account_info(),
            middle_token_program: $held.middle_token_program.to_account_info(),
            output_token_program: $held.output_token_program.to_account_info(),
            input_mint: $held.input_mint.to_account_info(),
            middle_mint: $held.middle_mint.to_account_info(),
            output_mint: $held.output_mint.to_account_info(),
        }
    };
}

#[program]
pub mod anchor_1_caller {
    use super::*;

    /// Swaps the holder's tokens through the guard and returns what the guard says was received.
    ///
    /// Anybody may call it, with any minimum above zero: it guards nothing itself. So it is with all of these.
    pub fn swap_held(
        ctx: Context<SwapHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
    ) -> Result<u64> {
        let seeds: &[&[u8]] = &[HOLDER_SEED, &[ctx.bumps.holder]];
        let signer_seeds = &[seeds];
        let guarded = one_hop!(Swap, ctx.accounts);
        let context = CpiContext::new_with_signer(swap_guard::ID, guarded, signer_seeds);
        swap_guard::cpi::swap(context, amount_in, minimum_out, expiry_slot)?;
        answer()
    }

    /// As `swap_held`, for an exact output, and returns what the guard says was spent.
    pub fn swap_exact_out_held(
        ctx: Context<SwapHeld>,
        maximum_in: u64,
        amount_out: u64,
        expiry_slot: u64,
    ) -> Result<u64> {
        let seeds: &[&[u8]] = &[HOLDER_SEED, &[ctx.bumps.holder]];
        let signer_seeds = &[seeds];
        let guarded = one_hop!(SwapExactOut, ctx.accounts);
        let context = CpiContext::new_with_signer(swap_guard::ID, guarded, signer_seeds);
        swap_guard::cpi::swap_exact_out(context, maximum_in, amount_out, expiry_slot)?;
        answer()
    }

    /// As `swap_held`, through two pools.
    pub fn swap_two_hops_held(
        ctx: Context<SwapTwoHopsHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
    ) -> Result<u64> {
        let seeds: &[&[u8]] = &[HOLDER_SEED, &[ctx.bumps.holder]];
        let signer_seeds = &[seeds];
        let guarded = two_hops!(SwapTwoHops, ctx.accounts);
        let context = CpiContext::new_with_signer(swap_guard::ID, guarded, signer_seeds);
        swap_guard::cpi::swap_two_hops(context, amount_in, minimum_out, expiry_slot)?;
        answer()
    }

    /// As `swap_held`, into an account of `receiver`.
    pub fn swap_held_to(
        ctx: Context<SwapHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
        receiver: Pubkey,
    ) -> Result<u64> {
        let seeds: &[&[u8]] = &[HOLDER_SEED, &[ctx.bumps.holder]];
        let signer_seeds = &[seeds];
        let guarded = one_hop!(SwapTo, ctx.accounts);
        let context = CpiContext::new_with_signer(swap_guard::ID, guarded, signer_seeds);
        swap_guard::cpi::swap_to(context, amount_in, minimum_out, expiry_slot, receiver)?;
        answer()
    }

    /// As `swap_exact_out_held`, into an account of `receiver`.
    pub fn swap_exact_out_held_to(
        ctx: Context<SwapHeld>,
        maximum_in: u64,
        amount_out: u64,
        expiry_slot: u64,
        receiver: Pubkey,
    ) -> Result<u64> {
        let seeds: &[&[u8]] = &[HOLDER_SEED, &[ctx.bumps.holder]];
        let signer_seeds = &[seeds];
        let guarded = one_hop!(SwapExactOutTo, ctx.accounts);
        let context = CpiContext::new_with_signer(swap_guard::ID, guarded, signer_seeds);
        swap_guard::cpi::swap_exact_out_to(context, maximum_in, amount_out, expiry_slot, receiver)?;
        answer()
    }

    /// As `swap_two_hops_held`, into an account of `receiver`.
    pub fn swap_two_hops_held_to(
        ctx: Context<SwapTwoHopsHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
        receiver: Pubkey,
    ) -> Result<u64> {
        let seeds: &[&[u8]] = &[HOLDER_SEED, &[ctx.bumps.holder]];
        let signer_seeds = &[seeds];
        let guarded = two_hops!(SwapTwoHopsTo, ctx.accounts);
        let context = CpiContext::new_with_signer(swap_guard::ID, guarded, signer_seeds);
        swap_guard::cpi::swap_two_hops_to(context, amount_in, minimum_out, expiry_slot, receiver)?;
        answer()
    }
}

/// The guard's return data, once it is sure to be the guard's.
fn answer() -> Result<u64> {
    let (program, data) = get_return_data().ok_or(CallerError::NoAnswer)?;
    require_keys_eq!(program, swap_guard::ID, CallerError::NoAnswer);
    let bytes: [u8; 8] = data.try_into().map_err(|_| CallerError::NoAnswer)?;
    Ok(u64::from_le_bytes(bytes))
}

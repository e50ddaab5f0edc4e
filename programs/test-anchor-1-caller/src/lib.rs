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
    #[msg("The guard did not say what was received")]
    NoAnswer, // 6000
}

/// The guard, and the guard's accounts in its own order, with the holder as the user.
#[derive(Accounts)]
pub struct SwapHeld<'info> {
    pub guard: Program<'info, swap_guard::program::SwapGuard>,
    /// CHECK: owns the token accounts; signs by its seed.
    #[account(seeds = [HOLDER_SEED], bump)]
    pub holder: UncheckedAccount<'info>,
    /// CHECK: the guard checks it.
    pub exchange_program: UncheckedAccount<'info>,
    /// CHECK: the exchange checks it, and all the others.
    pub authority: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    pub amm_config: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    #[account(mut)]
    pub pool_state: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    #[account(mut)]
    pub input_token_account: UncheckedAccount<'info>,
    /// CHECK: the guard checks it.
    #[account(mut)]
    pub output_token_account: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    #[account(mut)]
    pub input_vault: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    #[account(mut)]
    pub output_vault: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    pub input_token_program: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    pub output_token_program: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    pub input_mint: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    pub output_mint: UncheckedAccount<'info>,
    /// CHECK: see `authority`.
    #[account(mut)]
    pub observation_state: UncheckedAccount<'info>,
}

#[program]
pub mod anchor_1_caller {
    use super::*;

    /// Swaps the holder's tokens through the guard and returns what the guard says was received.
    ///
    /// Anybody may call it, with any minimum above zero: it guards nothing itself.
    pub fn swap_held(
        ctx: Context<SwapHeld>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
    ) -> Result<u64> {
        let seeds: &[&[u8]] = &[HOLDER_SEED, &[ctx.bumps.holder]];
        let signer_seeds = &[seeds];
        let context =
            CpiContext::new_with_signer(swap_guard::ID, ctx.accounts.guarded(), signer_seeds);
        swap_guard::cpi::swap(context, amount_in, minimum_out, expiry_slot)?;
        received()
    }
}

impl<'info> SwapHeld<'info> {
    fn guarded(&self) -> swap_guard::cpi::accounts::Swap<'info> {
        swap_guard::cpi::accounts::Swap {
            user: self.holder.to_account_info(),
            exchange_program: self.exchange_program.to_account_info(),
            authority: self.authority.to_account_info(),
            amm_config: self.amm_config.to_account_info(),
            pool_state: self.pool_state.to_account_info(),
            input_token_account: self.input_token_account.to_account_info(),
            output_token_account: self.output_token_account.to_account_info(),
            input_vault: self.input_vault.to_account_info(),
            output_vault: self.output_vault.to_account_info(),
            input_token_program: self.input_token_program.to_account_info(),
            output_token_program: self.output_token_program.to_account_info(),
            input_mint: self.input_mint.to_account_info(),
            output_mint: self.output_mint.to_account_info(),
            observation_state: self.observation_state.to_account_info(),
        }
    }
}

/// The guard's return data, once it is sure to be the guard's.
fn received() -> Result<u64> {
    let (program, data) = get_return_data().ok_or(CallerError::NoAnswer)?;
    require_keys_eq!(program, swap_guard::ID, CallerError::NoAnswer);
    let bytes: [u8; 8] = data.try_into().map_err(|_| CallerError::NoAnswer)?;
    Ok(u64::from_le_bytes(bytes))
}

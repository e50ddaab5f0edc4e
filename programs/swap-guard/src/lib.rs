//! Swap guard: swaps on Raydium's CPMM exchange and enforces a minimum output.
//! The transaction stands only if the user's own token account received at least what the user signed for.
//!
//! The guard believes nothing it is told about amounts. It reads the balances from the bytes of the token accounts
//! before and after the exchange ran, and compares the difference, so Token-2022 transfer fees count against the
//! user's minimum. It holds no tokens, has no state, no authority and no upgrade-dependent configuration.
#![cfg_attr(target_os = "solana", no_std)]

use anchor_lang::prelude::*;

pub mod constants;
pub mod error;
pub mod events;
pub mod exchange;
pub mod instructions;
pub mod received;

// All of it: `#[program]` names items that `#[derive(Accounts)]` generates beside the accounts.
use instructions::swap::*;

// Under upstream BPF these supply what the official toolchain builds in; unnamed, they would not be linked.
#[cfg(target_arch = "bpf")]
use {bpf_libcalls as _, solana_compiler_builtins as _};

declare_id!("SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b");

// Stands in the binary, where explorers and researchers look for it. Programs that call the guard must not carry it.
#[cfg(not(feature = "no-entrypoint"))]
solana_security_txt::security_txt! {
    name: "Sluice swap guard",
    project_url: "https://explorer.solana.com/address/SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b",
    contacts: "other:the upgrade authority of this program",
    policy: "Reports are welcome. Whoever deploys the guard names the address for them here."
}

#[program]
pub mod swap_guard {
    use super::*;

    /// Swaps exactly `amount_in` on the exchange and reverts unless at least `minimum_out` arrived.
    ///
    /// Specification:
    /// - The current slot is not past `expiry_slot`, unless that is 0, which means that the swap never expires.
    /// - Neither `amount_in` nor `minimum_out` is zero; both are in the smallest unit of their token.
    /// - The exchange program is Raydium's CPMM.
    /// - The output account is a token account of SPL Token or Token-2022, of the output mint, owned by the user,
    ///   and another account than the input account. All of it still holds after the exchange ran.
    /// - The exchange's `swap_base_input` is called with data and an account list that are built here.
    /// - The output balance grew by at least `minimum_out`; the input balance shrank by at most `amount_in`.
    /// - What was received is logged as a `GuardedSwap` event and returned as return data, u64 little-endian.
    pub fn swap(
        ctx: &mut Context<Swap>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
    ) -> Result<()> {
        instructions::swap::handler(
            &ctx.accounts,
            SwapArgs {
                amount_in,
                minimum_out,
                expiry_slot,
            },
        )
    }
}

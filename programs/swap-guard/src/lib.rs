//! Swap guard: swaps on Raydium's CPMM exchange and enforces what the user signed for.
//! The transaction stands only if the token account of the user, or of the receiver that the user signed for, received
//! at least the minimum, and no more was spent than offered.
//!
//! The guard believes no amount that a caller or the exchange states. It reads the balances from the bytes of the
//! token accounts before and after the exchange ran, and compares the difference, so Token-2022 transfer fees count
//! against the user's bounds. It holds no tokens, has no state, no authority and no upgrade-dependent configuration.
#![cfg_attr(target_os = "solana", no_std)]

use anchor_lang::prelude::*;

pub mod constants;
pub mod entrypoint;
pub mod error;
pub mod events;
pub mod instructions;
pub mod measure;
pub mod runtime;

// All of them: `#[program]` names items that `#[derive(Accounts)]` generates beside the accounts.
use instructions::{
    swap::*,
    swap_two_hops::*,
    terms::{Exact, Terms},
};

// Under upstream BPF these supply what the official toolchain builds in; unnamed, they would not be linked.
#[cfg(target_arch = "bpf")]
use {bpf_libcalls as _, solana_compiler_builtins as _};

declare_id!("SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b");

// Stands in the binary, where explorers and researchers look for it. Programs that call the guard must not carry it.
#[cfg(not(any(feature = "cpi", feature = "library")))]
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
    /// - What was spent and received is logged as a `Swapped` event; what was received is returned as return data, u64
    ///   little-endian.
    pub fn swap(
        ctx: &mut Context<Swap>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
    ) -> Result<()> {
        let terms = terms(Exact::Input, amount_in, minimum_out, expiry_slot);
        let user = ctx.accounts.user.address();
        Ok(instructions::swap::handler(&ctx.accounts, &terms, user)?)
    }

    /// Swaps at most `maximum_in` for exactly `amount_out`, and reverts unless at least that arrived.
    ///
    /// As `swap`, but that the exchange's `swap_base_output` is called with both amounts, and that what was spent is
    /// returned: the amount that the caller did not fix. A price past the maximum is refused by the exchange, with its
    /// 6005, before anything moves.
    pub fn swap_exact_out(
        ctx: &mut Context<Swap>,
        maximum_in: u64,
        amount_out: u64,
        expiry_slot: u64,
    ) -> Result<()> {
        let terms = terms(Exact::Output, maximum_in, amount_out, expiry_slot);
        let user = ctx.accounts.user.address();
        Ok(instructions::swap::handler(&ctx.accounts, &terms, user)?)
    }

    /// Swaps exactly `amount_in` through two pools and reverts unless at least `minimum_out` arrived.
    ///
    /// As `swap`, and:
    /// - The pools are two, and so are the input, middle and output accounts three.
    /// - The middle account is a token account of SPL Token or Token-2022, of the middle mint, owned by the user. All of
    ///   it still holds in the end.
    /// - The second pool is offered exactly what the first delivered to the middle account, which must be something.
    /// - The middle account does not hold less than before.
    pub fn swap_two_hops(
        ctx: &mut Context<SwapTwoHops>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
    ) -> Result<()> {
        let terms = terms(Exact::Input, amount_in, minimum_out, expiry_slot);
        let user = ctx.accounts.user.address();
        Ok(instructions::swap_two_hops::handler(
            &ctx.accounts,
            &terms,
            user,
        )?)
    }

    /// As `swap`, but that the output account is owned by `receiver`, who may be the user.
    pub fn swap_to(
        ctx: &mut Context<Swap>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
        receiver: Address,
    ) -> Result<()> {
        let terms = terms(Exact::Input, amount_in, minimum_out, expiry_slot);
        Ok(instructions::swap::handler(
            &ctx.accounts,
            &terms,
            &receiver,
        )?)
    }

    /// As `swap_exact_out`, but that the output account is owned by `receiver`, who may be the user.
    pub fn swap_exact_out_to(
        ctx: &mut Context<Swap>,
        maximum_in: u64,
        amount_out: u64,
        expiry_slot: u64,
        receiver: Address,
    ) -> Result<()> {
        let terms = terms(Exact::Output, maximum_in, amount_out, expiry_slot);
        Ok(instructions::swap::handler(
            &ctx.accounts,
            &terms,
            &receiver,
        )?)
    }

    /// As `swap_two_hops`, but that the output account is owned by `receiver`, who may be the user.
    pub fn swap_two_hops_to(
        ctx: &mut Context<SwapTwoHops>,
        amount_in: u64,
        minimum_out: u64,
        expiry_slot: u64,
        receiver: Address,
    ) -> Result<()> {
        let terms = terms(Exact::Input, amount_in, minimum_out, expiry_slot);
        Ok(instructions::swap_two_hops::handler(
            &ctx.accounts,
            &terms,
            &receiver,
        )?)
    }
}

fn terms(exact: Exact, maximum_spent: u64, minimum_received: u64, expiry_slot: u64) -> Terms {
    Terms {
        exact,
        maximum_spent,
        minimum_received,
        expiry_slot,
    }
}

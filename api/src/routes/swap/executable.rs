//! Executable swap: a checked request priced now, with the terms and accounts that the chain would accept.

use std::sync::Arc;

use cpmm::{Mint, TokenProgram, instruction::SwapAccounts, minimum_out};
use serde_json::{Map, json};
use sluice_transaction::{Associated, AssociatedAccounts, SwapTerms, compute_table::TokenShape};
use solana_pubkey::Pubkey;

use super::request::{Minimum, Swap};
use crate::{
    error::{ApiError, SwapRefusal},
    pricing::{Priced, QUOTE_LIFETIME_SLOTS, Unpriced, best_pool},
    routes::quote::Quote,
    state::AppState,
};

/// A swap that the chain would execute now.
pub struct ExecutableSwap {
    /// The quote that is enforced.
    pub quote: Quote,
    /// What is signed for.
    pub terms: SwapTerms,
    /// Accounts of the swap.
    pub accounts: SwapAccounts,
    /// The user's associated account of the input mint, and what its token is like.
    pub input: (Associated, TokenShape),
    /// The user's associated account of the output mint, and what its token is like.
    pub output: (Associated, TokenShape),
}

/// Prices the swap now and refuses it when the chain would: the caller pays for a failed transaction.
///
/// # Errors
/// [`ApiError::MarketNotReady`]; as [`best_pool`]; [`SwapRefusal::PoolMintMismatch`]; [`SwapRefusal::QuoteStale`] when
/// the pool pays less than the minimum or the quote is past its slot; [`SwapRefusal::WalletOffCurve`].
pub fn executable_swap(state: &AppState, swap: &Swap) -> Result<ExecutableSwap, ApiError> {
    let priced = best_pool(state.market(), &swap.ask).map_err(|unpriced| match unpriced {
        Unpriced::MintMismatch { pool } => SwapRefusal::PoolMintMismatch {
            pool: pool.to_string(),
        }
        .into(),
        Unpriced::Refused(refusal) => refusal,
    })?;
    let terms = enforced_terms(&priced, swap)?;
    if terms.minimum_out == 0 {
        // The guard refuses a minimum of zero, which would guard nothing.
        return Err(ApiError::AmountTooSmall);
    }
    Ok(with_accounts(state.associated(), &priced, swap, terms)?)
}

/// What is signed for: the minimum that is enforced, and the slot up to which.
fn enforced_terms(priced: &Priced, swap: &Swap) -> Result<SwapTerms, SwapRefusal> {
    let terms = |minimum_out, expiry_slot| SwapTerms {
        amount_in: priced.quote.amount_in.get(),
        minimum_out,
        expiry_slot,
    };
    let (received, slot) = (priced.quote.received.get(), priced.view.slot);
    let (minimum, quoted) = match swap.minimum {
        Minimum::Slippage(slippage) => (
            minimum_out(priced.quote.received, slippage).get(),
            Some(received),
        ),
        Minimum::Given {
            minimum_out,
            out_amount,
        } => (minimum_out, out_amount),
    };
    let renewed = scaled(received, minimum, quoted);
    let expired = swap.expiry_slot.is_some_and(|expiry| slot.get() > expiry);
    if swap.refresh {
        let moved = quoted != Some(received);
        let minimum = if moved { renewed } else { minimum };
        let expiry_slot = if expired {
            Some(slot.plus(QUOTE_LIFETIME_SLOTS).get())
        } else {
            swap.expiry_slot
        };
        return Ok(terms(minimum, expiry_slot));
    }
    let stale = |reason| {
        Err(SwapRefusal::QuoteStale {
            reason,
            fresh: fresh(priced, renewed),
        })
    };
    match swap.expiry_slot {
        Some(expiry) if expired => stale(format!(
            "the slot is {slot}, past the quote's expirySlot {expiry}"
        )),
        _ if received < minimum => stale(format!(
            "the pool now pays {received}, less than minimumOut {minimum}"
        )),
        expiry_slot => Ok(terms(minimum, expiry_slot)),
    }
}

/// The minimum with the same slippage as a quote of `quoted` and `minimum`, for what is received now; rounded down. A
/// quote that does not say what it expected allowed none.
fn scaled(received: u64, minimum: u64, quoted: Option<u64>) -> u64 {
    let quoted = quoted.unwrap_or(minimum);
    let product = u128::from(received).saturating_mul(u128::from(minimum));
    let scaled = product.checked_div(u128::from(quoted)).unwrap_or(0);
    u64::try_from(scaled).map_or(received, |scaled| scaled.min(received))
}

/// The members of a fresh quote. Nothing when its minimum would be zero, which the guard refuses.
fn fresh(priced: &Priced, minimum: u64) -> Map<String, serde_json::Value> {
    let slot = priced.view.slot;
    if minimum == 0 {
        return Map::new();
    }
    let mut members = Map::new();
    members.insert(
        "quote".to_owned(),
        json!(Quote::with_minimum(priced, minimum)),
    );
    members.insert(
        "context".to_owned(),
        json!({ "slot": slot.get(), "expirySlot": slot.plus(QUOTE_LIFETIME_SLOTS).get() }),
    );
    members
}

/// The swap with the accounts that it reads and writes.
fn with_accounts(
    known: &AssociatedAccounts,
    priced: &Priced,
    swap: &Swap,
    terms: SwapTerms,
) -> Result<ExecutableSwap, SwapRefusal> {
    let snapshot = &priced.view.snapshot;
    let direction = priced.direction;
    let associated = |mint: Pubkey, program: Pubkey| {
        let associated = known.of(&swap.user, &mint, &program);
        associated.ok_or(SwapRefusal::WalletOffCurve)
    };
    let (mints, programs) = (&snapshot.pool.mints, &snapshot.pool.token_programs);
    let input = associated(direction.input(mints), direction.input(programs))?;
    let output = associated(direction.output(mints), direction.output(programs))?;
    // A pool whose token program is none is not quoted.
    let kind = |program: Pubkey, mint: &Mint| {
        let program = TokenProgram::from_id(&program).unwrap_or(TokenProgram::Spl);
        TokenShape::of(program, mint)
    };
    let kinds = (
        kind(
            direction.input(programs),
            direction.input_ref::<Arc<Mint>>(&snapshot.mints),
        ),
        kind(
            direction.output(programs),
            direction.output_ref::<Arc<Mint>>(&snapshot.mints),
        ),
    );
    Ok(ExecutableSwap {
        quote: Quote::with_minimum(priced, terms.minimum_out),
        terms,
        accounts: SwapAccounts::of_pool(
            priced.view.address,
            &snapshot.pool,
            direction,
            swap.user,
            input.address,
            swap.destination.unwrap_or(output.address),
        ),
        input: (input, kinds.0),
        output: (output, kinds.1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_minimum_keeps_the_slippage() {
        assert_eq!(scaled(2_000, 995, Some(1_000)), 1_990);
        assert_eq!(scaled(500, 995, Some(1_000)), 497);
        assert_eq!(scaled(u64::MAX, u64::MAX, Some(u64::MAX)), u64::MAX);
        assert_eq!(scaled(u64::MAX, 5, Some(5)), u64::MAX);
        assert_eq!(scaled(7, 100, None), 7);
        assert_eq!(scaled(0, 100, Some(200)), 0);
    }
}

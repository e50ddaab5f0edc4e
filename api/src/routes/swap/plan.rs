//! From a checked request to a plan, against the market as it is now.

use cpmm::{instruction::SwapAccounts, minimum_out};
use serde_json::json;
use solana_pubkey::Pubkey;
use swap_guard_interface::associated_token_address;

use super::request::{Minimum, Swap};
use crate::{
    error::ApiError,
    pricing::{Priced, best_pool},
    routes::quote::Quote,
    state::AppState,
};

/// A swap that the chain would execute at this moment.
pub struct Executable {
    /// The quote that is enforced.
    pub quote: Quote,
    /// Accounts of the swap.
    pub accounts: SwapAccounts,
}

/// Prices the swap now and refuses it when the chain would: the caller pays for a failed transaction.
///
/// # Errors
/// As [`best_pool`], and [`ApiError::QuoteStale`] when the pool pays less than the minimum.
pub fn executable(state: &AppState, swap: &Swap) -> Result<Executable, ApiError> {
    let priced = best_pool(state.market(), &swap.ask)?;
    let minimum = match swap.minimum {
        Minimum::Given(minimum) => minimum,
        Minimum::Slippage(slippage) => minimum_out(priced.quote.received, slippage),
    };
    if minimum == 0 {
        // The guard refuses a minimum of zero, which would guard nothing.
        return Err(ApiError::AmountTooSmall);
    }
    if priced.quote.received < minimum {
        let received = priced.quote.received;
        return Err(ApiError::QuoteStale {
            received,
            minimum_out: minimum,
            fresh: json!(Quote::with_minimum(&priced, received)),
        });
    }
    Ok(Executable {
        quote: Quote::with_minimum(&priced, minimum),
        accounts: accounts(&priced, swap.user),
    })
}

fn accounts(priced: &Priced, user: Pubkey) -> SwapAccounts {
    let pool = &priced.view.snapshot.pool;
    let (mints, programs) = (&pool.mints, &pool.token_programs);
    let direction = priced.direction;
    let token_account =
        |mint: Pubkey, program: Pubkey| associated_token_address(&user, &mint, &program);
    SwapAccounts::of_pool(
        priced.view.address,
        pool,
        direction,
        user,
        token_account(direction.input(mints), direction.input(programs)),
        token_account(direction.output(mints), direction.output(programs)),
    )
}

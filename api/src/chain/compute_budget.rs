//! How many compute units a swap may use, and what a unit may cost.
//!
//! The limits are upper bounds with room for the exchange's own growth; a limit that is short makes a
//! good swap fail, one that is long only makes a fixed priority fee spread over more units.

use cpmm::{ids, instruction::SwapAccounts};

/// The guarded swap with both mints under SPL Token, before p-token: 53,000 units at the exchange in
/// public logs, the guard's overhead, and a quarter on top.
const GUARDED_SWAP: u32 = 70_000;

/// Added for each side whose mint is under Token-2022: a fee-taking transfer cost 9,133 in public logs.
const TOKEN_2022_SIDE: u32 = 10_000;

/// Creating an associated token account: 16,698 to 20,815 in public logs, more when the address takes
/// several tries to derive.
const CREATE_TOKEN_ACCOUNT: u32 = 35_000;

/// Transfer and sync for wrapping, or close for unwrapping: under 4,000 in public logs.
const WRAP_OR_UNWRAP: u32 = 5_000;

/// Two instructions that set the budget, 150 each.
const BUDGET_INSTRUCTIONS: u32 = 300;

/// Micro-lamports in a lamport.
const MICRO_LAMPORTS: u128 = 1_000_000;

/// What a transaction does, as far as its compute units depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Sides of the swap under Token-2022, 0 to 2.
    pub token_2022_sides: u32,
    /// Token accounts it creates.
    pub creates: u32,
    /// Wrapping and unwrapping steps.
    pub wraps: u32,
}

impl Work {
    /// A guarded swap over these accounts and nothing around it.
    #[must_use]
    pub fn swap_only(accounts: &SwapAccounts) -> Self {
        let sides = [accounts.input_token_program, accounts.output_token_program];
        let token_2022 = sides.iter().filter(|id| **id == ids::TOKEN_2022).count();
        Self {
            token_2022_sides: u32::try_from(token_2022).unwrap_or(2),
            ..Self::default()
        }
    }

    /// Compute unit limit.
    #[must_use]
    pub const fn unit_limit(self) -> u32 {
        BUDGET_INSTRUCTIONS
            .saturating_add(GUARDED_SWAP)
            .saturating_add(TOKEN_2022_SIDE.saturating_mul(self.token_2022_sides))
            .saturating_add(CREATE_TOKEN_ACCOUNT.saturating_mul(self.creates))
            .saturating_add(WRAP_OR_UNWRAP.saturating_mul(self.wraps))
    }
}

/// The highest unit price, in micro-lamports, whose fee for `unit_limit` units does not exceed
/// `priority_fee` lamports. Rounded down; the chain rounds the fee up to a whole lamport, so the fee
/// never passes the ceiling.
#[must_use]
pub fn unit_price(priority_fee: u64, unit_limit: u32) -> u64 {
    let micro = u128::from(priority_fee).saturating_mul(MICRO_LAMPORTS);
    let price = micro.checked_div(u128::from(unit_limit)).unwrap_or(0);
    u64::try_from(price).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_fee_is_a_ceiling() {
        for (fee, limit) in [
            (0, 70_000),
            (1, 70_300),
            (5_000, 70_300),
            (123_457, 999_983),
        ] {
            let price = u128::from(unit_price(fee, limit));
            let charged = (price * u128::from(limit)).div_ceil(MICRO_LAMPORTS);
            assert!(charged <= u128::from(fee), "{charged} > {fee}");
            let next = ((price + 1) * u128::from(limit)).div_ceil(MICRO_LAMPORTS);
            assert!(next > u128::from(fee), "a higher price would have fitted");
        }
    }
}

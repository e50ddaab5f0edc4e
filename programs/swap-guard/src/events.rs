//! Events of the guard, in Anchor's format: one per successful swap.

use anchor_lang::prelude::*;

/// A swap that passed every check. Amounts are in the smallest unit of their token.
#[event]
pub struct Swapped {
    /// Who signed and paid the input.
    pub user: Address,
    /// The exchange's pool that paid the output: of two hops, the second.
    pub pool: Address,
    /// By how much the user's input balance shrank.
    pub spent: u64,
    /// By how much the output balance grew.
    pub received: u64,
}

/// What earlier versions emitted. It stands here for the IDL, by which clients still read old logs.
#[event]
pub struct GuardedSwap {
    /// Who signed, paid the input and owns the output account.
    pub user: Address,
    /// The exchange's pool.
    pub pool: Address,
    pub input_mint: Address,
    pub output_mint: Address,
    /// What the user offered, before the input mint's transfer fee.
    pub amount_in: u64,
    /// The least the user accepted.
    pub minimum_out: u64,
    /// By how much the user's output balance grew.
    pub received: u64,
    /// The slot in which the swap executed.
    pub slot: u64,
}

/// Discriminator, two addresses, two numbers.
const LOGGED_LEN: usize = 8 + 2 * 32 + 2 * 8;

/// Writes the event to the log, as one `Program data:` line.
#[inline(always)]
pub fn log_swapped(user: &Address, pool: &Address, spent: u64, received: u64) {
    sol_log_data(&[&logged_bytes(user, pool, spent, received)]);
}

/// The bytes that `Event::data` would give, without its allocation. Every range is a constant, so that each field is a
/// few plain stores.
#[inline(always)]
fn logged_bytes(user: &Address, pool: &Address, spent: u64, received: u64) -> [u8; LOGGED_LEN] {
    let mut bytes = [0; LOGGED_LEN];
    bytes[..8].copy_from_slice(Swapped::DISCRIMINATOR);
    bytes[8..40].copy_from_slice(user.as_array());
    bytes[40..72].copy_from_slice(pool.as_array());
    bytes[72..80].copy_from_slice(&spent.to_le_bytes());
    bytes[80..].copy_from_slice(&received.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logged_bytes_are_those_that_anchor_decodes() {
        let event = Swapped {
            user: Address::new_from_array([1; 32]),
            pool: Address::new_from_array([2; 32]),
            spent: 0x0102_0304_0506_0708,
            received: u64::MAX,
        };
        let logged = logged_bytes(&event.user, &event.pool, event.spent, event.received);
        assert_eq!(logged.as_slice(), Event::data(&event));
    }
}

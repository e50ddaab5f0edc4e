//! Event of the guard: one per successful swap, in Anchor's event format.

use anchor_lang::prelude::*;

/// A swap that passed every check. Amounts are in the smallest unit of their token.
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

/// Discriminator, four addresses, four numbers.
const LOGGED_LEN: usize = 8 + 4 * 32 + 4 * 8;

impl GuardedSwap {
    /// Writes the event to the log, as one `Program data:` line.
    #[inline(always)]
    pub fn log(&self) {
        sol_log_data(&[&self.to_logged_bytes()]);
    }

    /// The bytes that `Event::data` would give, without its allocation. Every range is a constant, so that each field
    /// is a few plain stores.
    #[inline(always)]
    fn to_logged_bytes(&self) -> [u8; LOGGED_LEN] {
        let mut bytes = [0; LOGGED_LEN];
        bytes[..8].copy_from_slice(Self::DISCRIMINATOR);
        bytes[8..40].copy_from_slice(self.user.as_array());
        bytes[40..72].copy_from_slice(self.pool.as_array());
        bytes[72..104].copy_from_slice(self.input_mint.as_array());
        bytes[104..136].copy_from_slice(self.output_mint.as_array());
        bytes[136..144].copy_from_slice(&self.amount_in.to_le_bytes());
        bytes[144..152].copy_from_slice(&self.minimum_out.to_le_bytes());
        bytes[152..160].copy_from_slice(&self.received.to_le_bytes());
        bytes[160..].copy_from_slice(&self.slot.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logged_bytes_are_those_that_anchor_decodes() {
        let event = GuardedSwap {
            user: Address::new_from_array([1; 32]),
            pool: Address::new_from_array([2; 32]),
            input_mint: Address::new_from_array([3; 32]),
            output_mint: Address::new_from_array([4; 32]),
            amount_in: 0x0102_0304_0506_0708,
            minimum_out: u64::MAX,
            received: 1,
            slot: 438_881_024,
        };
        assert_eq!(event.to_logged_bytes().as_slice(), Event::data(&event));
    }
}

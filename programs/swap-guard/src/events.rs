//! What the guard tells the world: one event per successful swap, in Anchor's event format.

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
const ENCODED_LEN: usize = 8 + 4 * 32 + 4 * 8;

impl GuardedSwap {
    /// Writes the event to the log, as one `Program data:` line.
    pub fn log(&self) {
        sol_log_data(&[&self.encode()]);
    }

    /// The bytes `Event::data` would give, on the stack: the swap path allocates nothing.
    fn encode(&self) -> [u8; ENCODED_LEN] {
        let mut bytes = [0; ENCODED_LEN];
        let fields: [&[u8]; 9] = [
            Self::DISCRIMINATOR,
            self.user.as_array(),
            self.pool.as_array(),
            self.input_mint.as_array(),
            self.output_mint.as_array(),
            &self.amount_in.to_le_bytes(),
            &self.minimum_out.to_le_bytes(),
            &self.received.to_le_bytes(),
            &self.slot.to_le_bytes(),
        ];
        let mut rest = bytes.as_mut_slice();
        for field in fields {
            let (head, tail) = rest.split_at_mut(field.len());
            head.copy_from_slice(field);
            rest = tail;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_encoding_is_the_one_anchor_decodes() {
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
        assert_eq!(event.encode().as_slice(), Event::data(&event));
    }
}

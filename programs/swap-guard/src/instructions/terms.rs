//! Terms of a swap: what the user signs for, and the checks that need no account.

use crate::error::{Checked, SwapGuardError, ensure};
use anchor_lang::pinocchio::sysvars::{clock::CLOCK_ID, get_sysvar};

/// The `expiry_slot` of a swap that never expires.
pub const NO_EXPIRY: u64 = 0;

/// Which of the two amounts the exchange is to meet exactly. The other one is bounded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    /// What is offered.
    Input,
    /// What arrives.
    Output,
}

/// What the user signs for. Amounts are in the smallest unit of their token.
#[derive(Clone, Copy)]
pub struct Terms {
    pub exact: Exact,
    /// The most that may leave the input account, the input mint's transfer fee included: `amount_in` or `maximum_in`.
    pub maximum_spent: u64,
    /// The least that must arrive, after the output mint's transfer fee: `minimum_out` or `amount_out`.
    pub minimum_received: u64,
    /// The last slot in which the swap may execute, or [`NO_EXPIRY`].
    pub expiry_slot: u64,
}

impl Terms {
    /// Refuses amounts that guard nothing.
    ///
    /// # Errors
    /// `ZeroAmountIn`, then `ZeroMinimumOut`.
    #[inline(always)]
    pub fn check_amounts(&self) -> Checked {
        ensure(self.maximum_spent != 0, SwapGuardError::ZeroAmountIn)?;
        ensure(self.minimum_received != 0, SwapGuardError::ZeroMinimumOut)?;
        Ok(())
    }

    /// Refuses a swap that comes after its last slot. The clock is read for a swap that can expire, and for no other.
    ///
    /// # Errors
    /// `Expired`.
    #[inline(always)]
    pub fn check_expiry(&self) -> Checked {
        if self.expiry_slot == NO_EXPIRY {
            return Ok(());
        }
        ensure(current_slot()? <= self.expiry_slot, SwapGuardError::Expired)?;
        Ok(())
    }
}

/// The slot alone: asking the runtime for eight bytes is cheaper than for the whole clock.
#[inline(always)]
fn current_slot() -> Checked<u64> {
    /// The clock starts with the slot.
    const SLOT_OFFSET: usize = 0;
    let mut slot = [0; 8];
    get_sysvar(&mut slot, &CLOCK_ID, SLOT_OFFSET)?;
    Ok(u64::from_le_bytes(slot))
}

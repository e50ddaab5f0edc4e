//! Entrypoint: which of the six instructions it is, and its terms and accounts, from the runtime's input.

use crate::{
    error::{Checked, ensure},
    instruction,
    instructions::{
        swap, swap_two_hops,
        terms::{Exact, Terms},
    },
    runtime::{Input, Room},
};
use anchor_lang::{Discriminator, ErrorCode, address_eq, bytemuck::from_bytes, prelude::*};

#[cfg(all(target_os = "solana", not(any(feature = "cpi", feature = "library"))))]
crate::runtime::entrypoint!(serve);

/// Length of the data of an instruction that pays the user: discriminator and three numbers.
const PLAIN_LEN: usize = 32;

/// Length of the data of an instruction that pays a stated receiver.
const TO_LEN: usize = 64;

/// Serves one instruction.
///
/// # Errors
/// The first check that fails.
#[inline(always)]
pub fn serve(input: &Input) -> Checked {
    let data = input.data();
    let form = Form::of(data).ok_or(ErrorCode::InstructionFallbackNotFound)?;
    ensure(
        data.len() == form.data_len(),
        ProgramError::InvalidInstructionData,
    )?;
    ensure(
        address_eq(input.program_id(), &crate::ID),
        ErrorCode::DeclaredProgramIdMismatch,
    )?;
    if form.is_two_hops {
        let mut room = Room::<{ swap_two_hops::ACCOUNTS }>::empty();
        let accounts = input.walk(&mut room)?;
        swap_two_hops::serve(&accounts, &form.terms(data), form.receiver(data))
    } else {
        let mut room = Room::<{ swap::ACCOUNTS }>::empty();
        let accounts = input.walk(&mut room)?;
        swap::serve(&accounts, &form.terms(data), form.receiver(data))
    }
}

/// Refuses one of the six instructions whose data is too short or too long. Anchor's dispatcher accepts trailing bytes, in
/// which a receiver could hide from a signer who takes the instruction for a plain swap.
///
/// # Errors
/// `InvalidInstructionData`.
pub fn check_length(data: &[u8]) -> Checked {
    let is_right = Form::of(data).is_none_or(|form| form.data_len() == data.len());
    ensure(is_right, ProgramError::InvalidInstructionData)
}

/// One of the six instructions.
#[derive(Clone, Copy)]
struct Form {
    is_two_hops: bool,
    exact: Exact,
    has_receiver: bool,
}

impl Form {
    const fn new(is_two_hops: bool, exact: Exact, has_receiver: bool) -> Self {
        Self {
            is_two_hops,
            exact,
            has_receiver,
        }
    }

    #[inline(always)]
    fn of(data: &[u8]) -> Option<Self> {
        let discriminator = data.first_chunk::<8>()?;
        let is = |named: &[u8]| discriminator == named;
        if is(instruction::Swap::DISCRIMINATOR) {
            Some(Self::new(false, Exact::Input, false))
        } else if is(instruction::SwapExactOut::DISCRIMINATOR) {
            Some(Self::new(false, Exact::Output, false))
        } else if is(instruction::SwapTwoHops::DISCRIMINATOR) {
            Some(Self::new(true, Exact::Input, false))
        } else if is(instruction::SwapTo::DISCRIMINATOR) {
            Some(Self::new(false, Exact::Input, true))
        } else if is(instruction::SwapExactOutTo::DISCRIMINATOR) {
            Some(Self::new(false, Exact::Output, true))
        } else if is(instruction::SwapTwoHopsTo::DISCRIMINATOR) {
            Some(Self::new(true, Exact::Input, true))
        } else {
            None
        }
    }

    const fn data_len(self) -> usize {
        if self.has_receiver { TO_LEN } else { PLAIN_LEN }
    }

    #[inline(always)]
    fn terms(self, data: &[u8]) -> Terms {
        let number = |at: usize| u64::from_le_bytes(*data[at..].first_chunk().unwrap_or(&[0; 8]));
        Terms {
            exact: self.exact,
            maximum_spent: number(8),
            minimum_received: number(16),
            expiry_slot: number(24),
        }
    }

    #[inline(always)]
    fn receiver(self, data: &[u8]) -> Option<&Address> {
        self.has_receiver
            .then(|| from_bytes(&data[PLAIN_LEN..TO_LEN]))
    }
}

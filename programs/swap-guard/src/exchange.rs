//! Cross-program invocation of the exchange; the only file that knows how it is called.

use crate::{constants::EXCHANGE_ID, instructions::swap::Swap};
use core::mem::MaybeUninit;

use anchor_lang::{
    pinocchio::{
        cpi::{CpiAccount, invoke_unchecked},
        instruction::{InstructionAccount, InstructionView},
    },
    prelude::*,
};

/// First 8 bytes of the SHA-256 of `global:swap_base_input`.
const SWAP_BASE_INPUT: [u8; 8] = [0x8f, 0xbe, 0x5a, 0xda, 0xc4, 0x1e, 0x33, 0xde];

/// The exchange's own check is not the one that counts.
const NO_MINIMUM: u64 = 0;

/// Length of the exchange's account list.
const ACCOUNTS: usize = 13;

/// Position of the user in it. The user's signature is the only one handed on, whoever else signed the transaction.
const USER: usize = 0;

/// Calls the exchange's `swap_base_input`, asking it for no minimum: the minimum is the guard's to enforce, so that a
/// swap that falls short fails with the guard's own error, whatever the exchange believes it paid.
///
/// Its data and account list are built here, out of named accounts; nothing the caller supplied is passed on as bytes.
/// A failure of the exchange ends the transaction with its own error.
pub fn swap_base_input(accounts: &Swap, amount_in: u64) {
    let data = [
        SWAP_BASE_INPUT,
        amount_in.to_le_bytes(),
        NO_MINIMUM.to_le_bytes(),
    ];
    // The exchange's order; whether it writes the account.
    let list = [
        (accounts.user.account(), false),
        (accounts.authority.account(), false),
        (accounts.amm_config.account(), false),
        (accounts.pool_state.account(), true),
        (accounts.input_token_account.account(), true),
        (accounts.output_token_account.account(), true),
        (accounts.input_vault.account(), true),
        (accounts.output_vault.account(), true),
        (accounts.input_token_program.account(), false),
        (accounts.output_token_program.account(), false),
        (accounts.input_mint.account(), false),
        (accounts.output_mint.account(), false),
        (accounts.observation_state.account(), true),
    ];
    let mut metas = [const { MaybeUninit::uninit() }; ACCOUNTS];
    let mut infos = [const { MaybeUninit::uninit() }; ACCOUNTS];
    for (i, (view, is_writable)) in list.into_iter().enumerate() {
        let is_signer = i == USER;
        metas[i].write(InstructionAccount::new(
            view.address(),
            is_writable,
            is_signer,
        ));
        CpiAccount::init_from_account_view(view, &mut infos[i]);
    }
    // SAFETY: the loop wrote every element of both arrays, whose length is the list's.
    let (metas, infos): (&[InstructionAccount; ACCOUNTS], &[CpiAccount; ACCOUNTS]) =
        unsafe { (&*metas.as_ptr().cast(), &*infos.as_ptr().cast()) };
    let instruction = InstructionView {
        program_id: &EXCHANGE_ID,
        data: data.as_flattened(),
        accounts: metas,
    };
    // SAFETY: the exchange may write to the accounts' data, and nothing here holds a reference into it: balances are
    // read before and after, as values, and the accounts are views without typed data.
    unsafe { invoke_unchecked(&instruction, infos) }
}

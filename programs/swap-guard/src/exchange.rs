//! The only file that knows how the exchange is called.

use crate::{
    constants::EXCHANGE_ID,
    instructions::swap::{Swap, SwapArgs},
};
use anchor_lang::{
    pinocchio::instruction::InstructionAccount, prelude::*, unchecked_invoke_signed_fixed,
};

/// First 8 bytes of the SHA-256 of `global:swap_base_input`.
const SWAP_BASE_INPUT: [u8; 8] = [0x8f, 0xbe, 0x5a, 0xda, 0xc4, 0x1e, 0x33, 0xde];

/// Position of the user in the exchange's account list. The user's signature is the only one handed on, whoever else
/// signed the transaction.
const USER: usize = 0;

/// Calls the exchange's `swap_base_input`. Its data and account list are built here, out of named accounts; nothing
/// the caller supplied is passed on as bytes. A failure of the exchange ends the transaction with its own error.
///
/// # Errors
/// `InvalidArgument` when an account that the exchange writes is not writable.
pub fn swap_base_input(accounts: &mut Swap, args: SwapArgs) -> Result<()> {
    let mut data = [0; 24];
    data[..8].copy_from_slice(&SWAP_BASE_INPUT);
    data[8..16].copy_from_slice(&args.amount_in.to_le_bytes());
    data[16..].copy_from_slice(&args.minimum_out.to_le_bytes());

    let handles: [CpiHandle; 13] = [
        accounts.user.cpi_handle(),
        accounts.authority.cpi_handle(),
        accounts.amm_config.cpi_handle(),
        accounts.pool_state.try_cpi_handle_mut()?.into(),
        accounts.input_token_account.try_cpi_handle_mut()?.into(),
        accounts.output_token_account.try_cpi_handle_mut()?.into(),
        accounts.input_vault.try_cpi_handle_mut()?.into(),
        accounts.output_vault.try_cpi_handle_mut()?.into(),
        accounts.input_token_program.cpi_handle(),
        accounts.output_token_program.cpi_handle(),
        accounts.input_mint.cpi_handle(),
        accounts.output_mint.cpi_handle(),
        accounts.observation_state.try_cpi_handle_mut()?.into(),
    ];
    let mut metas = handles
        .each_ref()
        .map(|handle| InstructionAccount::new(handle.address(), handle.is_writable(), false));
    metas[USER].is_signer = true;
    unchecked_invoke_signed_fixed(&EXCHANGE_ID, &data, &metas, &handles, &[]);
    Ok(())
}

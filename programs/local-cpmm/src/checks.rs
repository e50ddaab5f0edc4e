//! Account checks, in the order and with the numbers of the exchange's framework.
//! First every account for itself, then the constraints between them.

use crate::{
    addresses::{EXCHANGE, SYSTEM, TOKEN, TOKEN_2022},
    error::ExchangeError,
    state::{Discriminated, decode},
};
use pinocchio::{AccountView, Address, error::ProgramError};

type Checked<T = ()> = Result<T, ProgramError>;

/// Ends the instruction with `error` unless `condition` holds.
pub fn require(condition: bool, error: ExchangeError) -> Checked {
    if condition { Ok(()) } else { Err(error.into()) }
}

pub fn signer(account: &AccountView) -> Checked {
    require(account.is_signer(), ExchangeError::AccountNotSigner)
}

pub fn writable(account: &AccountView) -> Checked {
    require(account.is_writable(), ExchangeError::ConstraintMut)
}

pub fn address(account: &AccountView, expected: &[u8; 32]) -> Checked {
    require(
        account.address().as_array() == expected,
        ExchangeError::ConstraintAddress,
    )
}

pub fn program(account: &AccountView, expected: &Address) -> Checked {
    require(
        account.address() == expected,
        ExchangeError::InvalidProgramId,
    )
}

/// Either token program.
pub fn token_program(account: &AccountView) -> Checked {
    let address = account.address();
    require(
        *address == TOKEN || *address == TOKEN_2022,
        ExchangeError::InvalidProgramId,
    )
}

/// A copy of the fields of an account of the exchange.
pub fn exchange_account<T: Discriminated>(account: &AccountView) -> Checked<T> {
    owned_by_exchange(account)?;
    let data = account.try_borrow()?;
    Ok(*decode::<T>(&data)?)
}

/// The same without the copy, for an account too large for the stack.
pub fn is_exchange_account<T: Discriminated>(account: &AccountView) -> Checked {
    owned_by_exchange(account)?;
    let data = account.try_borrow()?;
    decode::<T>(&data)?;
    Ok(())
}

fn owned_by_exchange(account: &AccountView) -> Checked {
    require(
        account.owned_by(&EXCHANGE),
        ExchangeError::AccountOwnedByWrongProgram,
    )
}

/// Refuses an account that does not exist, where the framework distinguishes this from a wrong owner.
pub fn exists(account: &AccountView) -> Checked {
    require(
        !account.owned_by(&SYSTEM) || account.lamports() != 0,
        ExchangeError::AccountNotInitialized,
    )
}

/// An account of either token program.
pub fn owned_by_token_program(account: &AccountView) -> Checked {
    exists(account)?;
    require(
        account.owned_by(&TOKEN) || account.owned_by(&TOKEN_2022),
        ExchangeError::AccountOwnedByWrongProgram,
    )
}

//! Account list of a call of the exchange: which accounts it writes, and whose signature is handed on.

use anchor_lang::prelude::*;

/// An account in the exchange's list: `SolAccountMeta` of the runtime's C interface.
#[repr(C)]
pub struct Listed {
    address: *const Address,
    is_writable: bool,
    is_signer: bool,
}

impl Listed {
    /// An account whose signature is handed on, and that the exchange does not write.
    #[inline(always)]
    pub fn signer(account: AccountView) -> Self {
        Self {
            address: account.address(),
            is_writable: false,
            is_signer: true,
        }
    }

    /// An account that the exchange writes. Its signature, should it have signed, is not handed on.
    #[inline(always)]
    pub fn writable(account: AccountView) -> Self {
        Self {
            address: account.address(),
            is_writable: true,
            is_signer: false,
        }
    }

    /// An account that the exchange only reads. Its signature, should it have signed, is not handed on.
    #[inline(always)]
    pub fn readonly(account: AccountView) -> Self {
        Self {
            address: account.address(),
            is_writable: false,
            is_signer: false,
        }
    }

    /// Puts another account in this one's place, to be used in the same way.
    #[inline(always)]
    pub fn replace(&mut self, account: AccountView) {
        self.address = account.address();
    }
}

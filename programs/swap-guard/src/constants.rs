//! Addresses and layout offsets the guard relies on, each part of a published binary interface.

use anchor_lang::prelude::Address;

/// Raydium CPMM: the only program the guard ever calls.
pub const EXCHANGE_ID: Address = Address::from_str_const(if cfg!(feature = "exchange-of-devnet") {
    "DRaycpLY18LhpbydsBWbVJtxpNv9oXPgjRSfpF2bWpYb"
} else {
    "CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C"
});

/// SPL Token.
pub const TOKEN_ID: Address =
    Address::from_str_const("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");

/// Token-2022.
pub const TOKEN_2022_ID: Address =
    Address::from_str_const("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");

/// Length of a token account without extensions, in both token programs.
pub const TOKEN_ACCOUNT_LEN: usize = 165;

/// Token-2022 writes the account type right behind the base account, when there are extensions.
pub const ACCOUNT_TYPE_OFFSET: usize = TOKEN_ACCOUNT_LEN;

/// The account type of a token account; 1 is a mint.
pub const ACCOUNT_TYPE_TOKEN_ACCOUNT: u8 = 2;

//! Raw account: one account of the chain as bytes, before any program's layout is read into it.

use bytes::Bytes;
use solana_pubkey::Pubkey;

/// An account as the chain has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAccount {
    /// Its address.
    pub pubkey: Pubkey,
    /// The program that owns it.
    pub owner: Pubkey,
    /// Its balance in lamports; 0 means that the account is closed, whatever its data says.
    pub lamports: u64,
    /// Its data.
    pub data: Bytes,
}

//! Account as the cluster's RPC returns it: owning program, lamports, data.

use solana_account_decoder_client_types::UiAccount;
use solana_pubkey::Pubkey;

/// An account as a swap depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldAccount {
    /// The program that owns it.
    pub program: Pubkey,
    /// Its lamports.
    pub lamports: u64,
    /// Its data.
    pub data: Vec<u8>,
}

/// The account in a node's answer. `None` when its encoding cannot be read.
pub(super) fn held(account: &UiAccount) -> Option<HeldAccount> {
    Some(HeldAccount {
        program: account.owner.parse().ok()?,
        lamports: account.lamports,
        data: account.data.decode()?,
    })
}

//! Account snapshot: accounts that one RPC call read at one confirmed slot.

use solana_pubkey::Pubkey;

use crate::decoded_account::DecodedAccount;

/// Accounts read by one RPC call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccountSnapshot {
    /// Confirmed slot at whose end they were read.
    pub(crate) context_slot: u64,
    /// What was found; [`DecodedAccount::Absent`] where there is no account.
    pub(crate) accounts: Vec<(Pubkey, DecodedAccount)>,
}

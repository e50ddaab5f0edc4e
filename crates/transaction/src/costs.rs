//! Costs of a transaction: what it takes from its wallet, lamports (pure).

use crate::account_creation::AccountCreation;

/// What the network charges for one signature, lamports.
pub const BASE_FEE: u64 = 5_000;

/// What a transaction takes from its wallet, lamports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Charged for the signature.
    pub base_fee: u64,
    /// Charged for priority.
    pub priority_fee: u64,
    /// Accounts that are created.
    pub created: Vec<AccountCreation>,
    /// Native SOL that is wrapped for the swap.
    pub wrapped: u64,
    /// What the wallet must hold for the transaction to succeed: all of the above, and the rent that exempts the wallet
    /// itself, under which the chain lets no wallet fall.
    pub required: u64,
}

impl Costs {
    /// Adds up. `wallet_rent` exempts the wallet itself.
    #[must_use]
    pub fn new(
        priority_fee: u64,
        created: Vec<AccountCreation>,
        wrapped: u64,
        wallet_rent: u64,
    ) -> Self {
        let parts = [BASE_FEE, priority_fee, wrapped, wallet_rent];
        let rents = created.iter().map(|created| created.rent);
        let required = parts.into_iter().chain(rents).fold(0, u64::saturating_add);
        Self {
            base_fee: BASE_FEE,
            priority_fee,
            created,
            wrapped,
            required,
        }
    }
}

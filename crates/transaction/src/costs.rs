//! Costs of a transaction: what it takes from whom, lamports (pure).

use crate::account_creation::AccountCreation;

/// What the network charges for one signature, lamports.
pub const BASE_FEE: u64 = 5_000;

/// What a transaction takes from its fee payer and its user, lamports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Charged for the signatures.
    pub base_fee: u64,
    /// Charged for priority.
    pub priority_fee: u64,
    /// Accounts that are created.
    pub created: Vec<AccountCreation>,
    /// Native SOL of the user that is wrapped for the swap.
    pub wrapped: u64,
    /// Native SOL of the user that a platform gets.
    pub platform_fee: u64,
    /// What the fee payer must hold for the transaction to succeed: fees, rents, what is wrapped and paid to a platform
    /// where the user is the fee payer, and the rent that exempts the wallet itself, under which the chain lets no wallet fall.
    pub required: u64,
    /// What the user must hold where another wallet is the fee payer: what is wrapped and paid to a platform, and the
    /// rent that exempts the wallet itself. Nothing where neither takes anything.
    pub required_of_user: u64,
}

impl Costs {
    /// Adds up. `user_pays` when the user is the fee payer; `platform_fee` is native SOL; `wallet_rent` exempts a wallet
    /// itself.
    #[must_use]
    pub fn new(
        user_pays: bool,
        priority_fee: u64,
        created: Vec<AccountCreation>,
        wrapped: u64,
        platform_fee: u64,
        wallet_rent: u64,
    ) -> Self {
        let base_fee = if user_pays {
            BASE_FEE
        } else {
            BASE_FEE.saturating_mul(2)
        };
        let (by_payer, required_of_user) = match wrapped.saturating_add(platform_fee) {
            native if user_pays => (native, 0),
            0 => (0, 0),
            native => (0, native.saturating_add(wallet_rent)),
        };
        let parts = [base_fee, priority_fee, by_payer, wallet_rent];
        let rents = created.iter().map(|created| created.rent);
        let required = parts.into_iter().chain(rents).fold(0, u64::saturating_add);
        Self {
            base_fee,
            priority_fee,
            created,
            wrapped,
            platform_fee,
            required,
            required_of_user,
        }
    }
}

//! Answers of the two swap endpoints: transaction with manifest and costs, or bare instruction.

mod instruction;
mod transaction;

use serde::Serialize;
use sluice_transaction::{AccountCreation, SolOutput, costs::Costs};
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

pub use self::{instruction::InstructionResponse, transaction::TransactionResponse};
use crate::extract::{Address, Digits};

/// What becomes of SOL that comes out.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum SolOutputView {
    /// Native SOL arrives: exactly what was received.
    Unwrapped,
    /// Native SOL arrives, and with it the rent of the account it was in, which the fee payer had paid: on a cluster whose
    /// token program has no `unwrapLamports`.
    UnwrappedWithRent,
    /// It stays wrapped in `destinationTokenAccount`.
    LeftWrapped,
}

/// What the transaction takes from its wallets, lamports.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CostsView {
    /// The wallet that pays both fees and every rent.
    fee_payer: Address,
    base_fee_lamports: u64,
    base_fee_lamports_string: Digits,
    /// What is charged for priority: at most `priorityFeeLamports`.
    priority_fee_lamports: u64,
    priority_fee_lamports_string: Digits,
    /// Every account that is created.
    rent: Vec<RentView>,
    /// Native SOL of the user that is wrapped for the swap. Of an exact output the rest is unwrapped again.
    wrapped_lamports: u64,
    wrapped_lamports_string: Digits,
    /// With this much the transaction cannot fail for lack of the fee payer's lamports: all that it pays, and the rent that
    /// exempts the wallet itself, below which the chain lets no wallet fall.
    required_lamports: u64,
    required_lamports_string: Digits,
    /// With this much it cannot fail for lack of the user's, where another wallet is the fee payer.
    required_of_user_lamports: u64,
    required_of_user_lamports_string: Digits,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RentView {
    account: Address,
    mint: Address,
    /// The wallet that owns the account.
    owner: Address,
    lamports: u64,
    lamports_string: Digits,
    /// Whether the same transaction closes the account and gives the rent back to the fee payer. Otherwise its owner gets
    /// it by closing the account: so it is with every account that receives tokens, and with the middle one where its
    /// mint withholds transfer fees, which the token program makes it keep.
    comes_back: bool,
    /// The wallet that gets the rent where the same transaction closes the account: the fee payer, or on a cluster whose
    /// token program cannot part SOL from rent the one that gets the SOL; null where the account stays.
    #[schema(required)]
    rent_to: Option<Address>,
}

impl From<SolOutput> for SolOutputView {
    fn from(output: SolOutput) -> Self {
        match output {
            SolOutput::Unwrapped => Self::Unwrapped,
            SolOutput::UnwrappedWithRent => Self::UnwrappedWithRent,
            SolOutput::LeftWrapped => Self::LeftWrapped,
        }
    }
}

impl CostsView {
    pub(super) fn new(costs: &Costs, fee_payer: &Pubkey) -> Self {
        Self {
            fee_payer: Address::new(fee_payer),
            base_fee_lamports: costs.base_fee,
            base_fee_lamports_string: Digits(costs.base_fee),
            priority_fee_lamports: costs.priority_fee,
            priority_fee_lamports_string: Digits(costs.priority_fee),
            rent: costs
                .created
                .iter()
                .map(|creation| RentView::new(creation, fee_payer))
                .collect(),
            wrapped_lamports: costs.wrapped,
            wrapped_lamports_string: Digits(costs.wrapped),
            required_lamports: costs.required,
            required_lamports_string: Digits(costs.required),
            required_of_user_lamports: costs.required_of_user,
            required_of_user_lamports_string: Digits(costs.required_of_user),
        }
    }
}

impl RentView {
    fn new(creation: &AccountCreation, fee_payer: &Pubkey) -> Self {
        Self {
            account: Address::new(&creation.account),
            mint: Address::new(&creation.mint),
            owner: Address::new(&creation.owner),
            lamports: creation.rent,
            lamports_string: Digits(creation.rent),
            comes_back: creation.rent_to == Some(*fee_payer),
            rent_to: creation.rent_to.as_ref().map(Address::new),
        }
    }
}

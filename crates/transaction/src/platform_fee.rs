//! Platform fee: the part of a swap's input that an integrator's wallet gets before the swap (pure).

use cpmm::{BasisPoints, instruction::SwapAccounts};
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;
use solana_system_interface::instruction::transfer;
use spl_token_interface::instruction::TokenInstruction;

use crate::{
    compute_table::{self as table, TokenShape},
    planned_instruction::{PlannedInstruction, manifest},
};

/// How much of what the user pays is the platform's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlatformRate(BasisPoints);

impl PlatformRate {
    /// The highest rate, basis points: something must be left to be swapped.
    pub const MOST: u16 = 9_999;

    /// The rate, or `None` above [`PlatformRate::MOST`].
    #[must_use]
    pub fn new(basis_points: u16) -> Option<Self> {
        let rate = BasisPoints::new(basis_points).filter(|rate| rate.get() <= Self::MOST);
        rate.map(Self)
    }

    /// The rate in basis points.
    #[must_use]
    pub const fn basis_points(self) -> u16 {
        self.0.get()
    }

    /// The fee of `paid`, all that the user pays; rounded down.
    #[must_use]
    pub fn of(self, paid: u64) -> u64 {
        let product = u128::from(paid).saturating_mul(u128::from(self.0.get()));
        let fee = product.checked_div(u128::from(BasisPoints::MAX.get()));
        // A part of `paid` is no larger than it.
        fee.and_then(|fee| u64::try_from(fee).ok()).unwrap_or(paid)
    }

    /// What the fee leaves of `paid` for the swap.
    #[must_use]
    pub fn rest(self, paid: u64) -> u64 {
        paid.saturating_sub(self.of(paid))
    }

    /// What the user pays so that at least `rest` is left: `rest × 10,000 / (10,000 - rate)`, rounded up. Of what leaves
    /// 64 bits, which no account holds, the most that they hold.
    #[must_use]
    pub fn paid_for(self, rest: u64) -> u64 {
        let whole = u128::from(BasisPoints::MAX.get());
        let kept = whole.saturating_sub(u128::from(self.0.get())).max(1);
        let paid = u128::from(rest).saturating_mul(whole).div_ceil(kept);
        u64::try_from(paid).unwrap_or(u64::MAX)
    }
}

/// A platform's fee of one swap, and where it goes: the wallet itself where SOL is wrapped in the transaction, else its
/// associated account of the input token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlatformFee {
    /// What leaves the user, smallest units; above 0.
    pub amount: u64,
    /// The platform's wallet.
    pub wallet: Pubkey,
    /// The wallet's associated account of the input token.
    pub account: Pubkey,
    /// Bump of that address.
    pub bump: u8,
    /// Whether that account is there; else it is created.
    pub is_there: bool,
    /// Decimal places of the input token, which the token program compares.
    pub decimals: u8,
}

impl PlatformFee {
    /// Pays the fee as native SOL.
    pub(crate) fn pay_native(&self, user: &Pubkey) -> PlannedInstruction {
        let pay = transfer(user, &self.wallet, self.amount);
        PlannedInstruction::new(manifest::PLATFORM_FEE_IN_SOL, pay, table::BUILTIN)
    }

    /// Pays the fee from the account that pays into the first pool.
    pub(crate) fn pay_tokens(&self, first: &SwapAccounts, token: TokenShape) -> PlannedInstruction {
        // The same bytes for both token programs.
        let data = TokenInstruction::TransferChecked {
            amount: self.amount,
            decimals: self.decimals,
        };
        let pay = Instruction {
            program_id: first.input_token_program,
            accounts: vec![
                AccountMeta::new(first.input_token_account, false),
                AccountMeta::new_readonly(first.input_mint, false),
                AccountMeta::new(self.account, false),
                AccountMeta::new_readonly(first.payer, true),
            ],
            data: data.pack(),
        };
        PlannedInstruction::new(manifest::PLATFORM_FEE, pay, table::transfer_checked(token))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(basis_points: u16) -> PlatformRate {
        PlatformRate::new(basis_points).expect("a rate")
    }

    #[test]
    fn the_fee_is_rounded_down_and_something_is_always_left() {
        assert_eq!(PlatformRate::new(10_000), None);
        assert_eq!((rate(50).of(199), rate(50).rest(199)), (0, 199));
        assert_eq!((rate(50).of(1_000), rate(50).rest(1_000)), (5, 995));
        assert_eq!((rate(9_999).of(1), rate(9_999).rest(1)), (0, 1));
        assert_eq!(rate(9_999).rest(u64::MAX), u64::MAX / 10_000 + 1);
        assert_eq!(rate(5_000).paid_for(u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn what_is_left_of_a_payment_for_a_rest_is_that_rest_or_one_more(
            basis_points in 0..10_000u16,
            rest in prop_oneof![1..1_000u64, 1..u64::MAX / 10_000],
        ) {
            let rate = rate(basis_points);
            let paid = rate.paid_for(rest);
            prop_assert!((rest..=rest + 1).contains(&rate.rest(paid)));
            prop_assert_eq!(rate.of(paid) + rate.rest(paid), paid);
        }
    }
}

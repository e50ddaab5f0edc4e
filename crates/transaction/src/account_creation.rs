//! Creation of a token account: its address and rent, and the instructions that create it (pure).

use cpmm::ids;
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;
use solana_system_interface::instruction::create_account_with_seed;
use spl_token_interface::instruction::initialize_account3;
use swap_guard_interface::ASSOCIATED_TOKEN_PROGRAM;

use crate::{
    compute_table::{self as table, TokenKind, TokenShape},
    planned_instruction::{PlannedInstruction, manifest},
    rent::Rent,
};

/// Longest seed that the system program takes, characters.
const SEED_LEN: usize = 32;

/// Why building an instruction of the token program cannot fail.
pub(crate) const SPL_TOKEN_IS_ONE: &str = "SPL Token is a token program";

/// A token account that a transaction creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountCreation {
    /// Its address.
    pub account: Pubkey,
    /// Its mint.
    pub mint: Pubkey,
    /// The wallet that owns it: the user, or the receiver.
    pub owner: Pubkey,
    /// Its rent, lamports.
    pub rent: u64,
    /// The wallet that gets the rent where the same transaction closes it. Otherwise the owner gets it by closing it.
    pub rent_to: Option<Pubkey>,
    /// How it is created.
    pub(crate) method: CreationMethod,
}

/// How a token account is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CreationMethod {
    /// By the associated token program, at an address of this bump.
    Associated {
        token: TokenShape,
        token_program: Pubkey,
        bump: u8,
    },
    /// By the system program, at an address that follows from the user's and this seed.
    Seeded { seed: String, space: usize },
}

/// Instructions of the associated token program, by their numbers.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum AssociatedInstruction {
    /// Fails when the account is there already.
    Create = 0,
    /// Does nothing when the account is there already.
    CreateIdempotent = 1,
}

impl AccountCreation {
    /// Creation of an account of this transaction alone, which takes wrapped SOL and is closed at the end.
    ///
    /// Its address is the user's own and follows from the seed, which cannot be known, and the address thus not be occupied,
    /// before the transaction is built: its first [`SEED_LEN`] characters. Two transactions with the same one may share it, because each
    /// closes it.
    pub(crate) fn temporary(user: &Pubkey, seed: &str, rent: Rent, rent_to: Pubkey) -> Self {
        let seed: String = seed.chars().take(SEED_LEN).collect();
        let account = Pubkey::create_with_seed(user, &seed, &ids::SPL_TOKEN)
            .expect("a seed of at most 32 characters, for an owner that is not a derived address");
        let space = TokenKind::Spl.account_len();
        Self {
            account,
            mint: ids::WRAPPED_SOL,
            owner: *user,
            rent: rent.exempt(space),
            rent_to: Some(rent_to),
            method: CreationMethod::Seeded { seed, space },
        }
    }

    /// Whether it is at an address of this transaction alone.
    pub(crate) const fn is_temporary(&self) -> bool {
        matches!(self.method, CreationMethod::Seeded { .. })
    }

    /// The instructions that create it, paid for by `payer`.
    pub(crate) fn instructions(&self, payer: &Pubkey) -> Vec<PlannedInstruction> {
        match &self.method {
            CreationMethod::Associated {
                token,
                token_program,
                bump,
            } => {
                // An account that this transaction closes must be one that it creates: if somebody
                // creates and fills it meanwhile, the transaction fails instead of emptying it.
                let how = if self.rent_to.is_some() {
                    AssociatedInstruction::Create
                } else {
                    AssociatedInstruction::CreateIdempotent
                };
                let for_another = if *payer == self.owner {
                    0
                } else {
                    table::CREATE_FOR_ANOTHER
                };
                vec![PlannedInstruction::new(
                    manifest::CREATE_TOKEN_ACCOUNT,
                    self.create_associated(payer, token_program, how),
                    table::create_account(*token, *bump).saturating_add(for_another),
                )]
            }
            CreationMethod::Seeded { seed, space } => self.create_seeded(payer, seed, *space),
        }
    }

    /// Creates the associated account at its address, which is known already: the library's functions derive it anew,
    /// which would be the larger part of building a transaction.
    fn create_associated(
        &self,
        payer: &Pubkey,
        token_program: &Pubkey,
        how: AssociatedInstruction,
    ) -> Instruction {
        Instruction {
            program_id: ASSOCIATED_TOKEN_PROGRAM,
            accounts: vec![
                AccountMeta::new(*payer, true),
                AccountMeta::new(self.account, false),
                AccountMeta::new_readonly(self.owner, false),
                AccountMeta::new_readonly(self.mint, false),
                AccountMeta::new_readonly(solana_system_interface::program::ID, false),
                AccountMeta::new_readonly(*token_program, false),
            ],
            data: vec![how as u8],
        }
    }

    fn create_seeded(&self, payer: &Pubkey, seed: &str, space: usize) -> Vec<PlannedInstruction> {
        let space = u64::try_from(space).unwrap_or(u64::MAX);
        let create = create_account_with_seed(
            payer,
            &self.account,
            &self.owner,
            seed,
            self.rent,
            space,
            &ids::SPL_TOKEN,
        );
        let initialize =
            initialize_account3(&ids::SPL_TOKEN, &self.account, &self.mint, &self.owner)
                .expect(SPL_TOKEN_IS_ONE);
        let label = if *payer == self.owner {
            manifest::CREATE_TEMPORARY
        } else {
            manifest::CREATE_TEMPORARY_FOR_USER
        };
        vec![
            PlannedInstruction::new(label, create, table::BUILTIN),
            PlannedInstruction::new(
                manifest::INITIALIZE_TEMPORARY,
                initialize,
                table::INITIALIZE_ACCOUNT,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use spl_associated_token_account_interface::instruction as library;

    use super::*;
    use crate::associated::Associated;

    #[test]
    fn accounts_are_created_as_the_library_does() {
        let (owner, mint) = (Pubkey::from([1; 32]), Pubkey::from([9; 32]));
        for program in [ids::SPL_TOKEN, ids::TOKEN_2022] {
            for payer in [owner, Pubkey::from([2; 32])] {
                let creation = AccountCreation {
                    account: Associated::of(&owner, &mint, &program).address,
                    mint,
                    owner,
                    rent: 1,
                    rent_to: None,
                    method: CreationMethod::Associated {
                        token: TokenShape::plain(TokenKind::Spl),
                        token_program: program,
                        bump: 255,
                    },
                };
                let ours = |how| creation.create_associated(&payer, &program, how);
                assert_eq!(
                    ours(AssociatedInstruction::Create),
                    library::create_associated_token_account(&payer, &owner, &mint, &program)
                );
                assert_eq!(
                    ours(AssociatedInstruction::CreateIdempotent),
                    library::create_associated_token_account_idempotent(
                        &payer, &owner, &mint, &program
                    )
                );
            }
        }
    }
}

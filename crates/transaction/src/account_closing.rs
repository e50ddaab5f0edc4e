//! Closing of a token account after the swap: where its SOL goes, and where its rent (pure).

use cpmm::ids;
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;
use spl_token_interface::instruction::{TokenInstruction, unwrap_lamports};

use crate::{
    account_creation::SPL_TOKEN_IS_ONE,
    compute_table as table,
    planned_instruction::{PlannedInstruction, manifest},
};

/// A token account that the transaction closes.
pub(crate) struct AccountClosing {
    /// Its address.
    pub account: Pubkey,
    /// Its token program.
    pub token_program: Pubkey,
    /// Whether it holds wrapped SOL.
    pub is_wrapped_sol: bool,
    /// The wallet that gets the SOL in it; `None` when there is none left.
    pub sol_to: Option<Pubkey>,
    /// The wallet that gets its rent.
    pub rent_to: Pubkey,
}

impl AccountClosing {
    /// Closing pays SOL and rent to one address. Where they go apart, `unwrapLamports` pays the SOL out before: all that
    /// there is, so that its receiver gets what arrived to the lamport, and never the rent.
    pub(crate) fn instructions(&self, owner: &Pubkey) -> Vec<PlannedInstruction> {
        let apart = self.sol_to.filter(|receiver| *receiver != self.rent_to);
        let unwrap = apart.map(|receiver| {
            let unwrap =
                unwrap_lamports(&ids::SPL_TOKEN, &self.account, &receiver, owner, &[], None)
                    .expect(SPL_TOKEN_IS_ONE);
            PlannedInstruction::new(manifest::UNWRAP_TO, unwrap, table::UNWRAP_LAMPORTS)
        });
        let label = if !self.is_wrapped_sol || apart.is_some() {
            manifest::CLOSE
        } else if self.rent_to == *owner {
            manifest::UNWRAP
        } else if self.sol_to.is_some() {
            manifest::UNWRAP_TO
        } else {
            manifest::CLOSE
        };
        let units = if self.token_program == ids::SPL_TOKEN {
            table::CLOSE_ACCOUNT
        } else {
            table::CLOSE_TOKEN_2022_ACCOUNT
        };
        let close = PlannedInstruction::new(label, self.close(owner), units);
        unwrap.into_iter().chain([close]).collect()
    }

    /// The same bytes for both token programs.
    fn close(&self, owner: &Pubkey) -> Instruction {
        Instruction {
            program_id: self.token_program,
            accounts: vec![
                AccountMeta::new(self.account, false),
                AccountMeta::new(self.rent_to, false),
                AccountMeta::new_readonly(*owner, true),
            ],
            data: TokenInstruction::CloseAccount.pack(),
        }
    }
}

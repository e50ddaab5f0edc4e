//! Holdings: the user's token accounts, checked against what a swap requires of them.

use cpmm::{TokenAccount, TokenProgram};
use sluice_transaction::costs::Costs;
use solana_pubkey::Pubkey;

use super::{executable::ExecutableSwap, request::Swap};
use crate::{
    error::SwapRefusal,
    rpc::{HeldAccount, UserAccounts},
};

/// The two token accounts as they are now; `None` where one is yet to be created.
pub struct Holdings {
    /// The account that pays.
    pub input: Option<TokenAccount>,
    /// The account that receives.
    pub output: Option<TokenAccount>,
}

impl Holdings {
    /// Checks what was found.
    ///
    /// # Errors
    /// [`SwapRefusal::TokenAccountUnusable`] when the chain would refuse one of them, or the destination that the user
    /// named does not exist.
    pub fn check(
        swap: &Swap,
        executable: &ExecutableSwap,
        found: &UserAccounts,
    ) -> Result<Self, SwapRefusal> {
        let accounts = &executable.accounts;
        let input = RequiredAccount {
            field: "userPublicKey",
            address: accounts.input_token_account,
            mint: accounts.input_mint,
            program: accounts.input_token_program,
        };
        let output = RequiredAccount {
            field: swap
                .destination
                .map_or("userPublicKey", |_| "destinationTokenAccount"),
            address: accounts.output_token_account,
            mint: accounts.output_mint,
            program: accounts.output_token_program,
        };
        let input = input.check(&swap.user, found.input.as_ref())?;
        let held = output.check(&swap.user, found.output.as_ref())?;
        if swap.destination.is_some() && held.is_none() {
            return Err(output.unusable("does not exist; create it first, or leave the field out"));
        }
        Ok(Self {
            input,
            output: held,
        })
    }

    /// Refuses a swap of more than the user holds. A transaction, unlike the bare instruction, also costs its wallet
    /// lamports: `paid` are these costs, of which what is wrapped adds to the input, and the wallet's lamports.
    ///
    /// # Errors
    /// [`SwapRefusal::InsufficientBalance`].
    pub fn require_balance(
        &self,
        executable: &ExecutableSwap,
        paid: Option<(&Costs, u64)>,
    ) -> Result<(), SwapRefusal> {
        let held = self.input.map_or(0, |account| account.amount);
        let wrapped = paid.map_or(0, |(costs, _)| costs.wrapped);
        let mint = &executable.accounts.input_mint;
        let unit = || format!("smallest units of {mint}");
        require(
            held.saturating_add(wrapped),
            executable.terms.amount_in,
            unit,
        )?;
        paid.map_or(Ok(()), |(costs, lamports)| {
            require(lamports, costs.required, || "lamports".to_owned())
        })
    }
}

fn require(held: u64, needed: u64, unit: impl FnOnce() -> String) -> Result<(), SwapRefusal> {
    if held >= needed {
        return Ok(());
    }
    Err(SwapRefusal::InsufficientBalance {
        unit: unit(),
        held,
        needed,
    })
}

/// A token account that a swap needs.
struct RequiredAccount {
    /// The field that leads to it.
    field: &'static str,
    address: Pubkey,
    mint: Pubkey,
    program: Pubkey,
}

impl RequiredAccount {
    fn unusable(&self, fault: impl Into<String>) -> SwapRefusal {
        SwapRefusal::TokenAccountUnusable {
            field: self.field,
            account: self.address.to_string(),
            fault: fault.into(),
        }
    }

    fn check(
        &self,
        user: &Pubkey,
        found: Option<&HeldAccount>,
    ) -> Result<Option<TokenAccount>, SwapRefusal> {
        let Some(found) = found else {
            return Ok(None);
        };
        if found.program != self.program {
            let fault = match TokenProgram::from_id(&found.program) {
                Some(_) => format!(
                    "belongs to the other token program; give one of {}",
                    self.program
                ),
                None => format!(
                    "is no token account; give one of {} under {}",
                    self.mint, self.program
                ),
            };
            return Err(self.unusable(fault));
        }
        let account = TokenAccount::decode(&found.data)
            .map_err(|error| self.unusable(format!("is no token account: {error}")))?;
        if account.mint != self.mint {
            let fault = format!("is of mint {}; give one of {}", account.mint, self.mint);
            return Err(self.unusable(fault));
        }
        if account.owner != *user {
            return Err(self.unusable("belongs to another wallet; give one of userPublicKey's"));
        }
        if account.frozen {
            return Err(self.unusable("is frozen; the mint's authority can thaw it"));
        }
        Ok(Some(account))
    }
}

#[cfg(test)]
mod tests {
    use cpmm::{TokenAccountKind, ids};

    use super::*;

    fn key(n: u8) -> Pubkey {
        Pubkey::from([n; 32])
    }

    fn fault(change: impl FnOnce(&mut TokenAccount), program: Pubkey) -> Option<String> {
        let mut account = TokenAccount {
            mint: key(1),
            owner: key(2),
            amount: 3,
            frozen: false,
        };
        change(&mut account);
        let found = HeldAccount {
            program,
            lamports: 1,
            data: account.encode(TokenAccountKind::Plain),
        };
        let required = RequiredAccount {
            field: "destinationTokenAccount",
            address: key(9),
            mint: key(1),
            program: ids::SPL_TOKEN,
        };
        let checked = required.check(&key(2), Some(&found));
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn only_a_usable_account_of_the_user_and_the_mint_passes() {
        assert_eq!(fault(|_| {}, ids::SPL_TOKEN), None);
        let says = |change: fn(&mut TokenAccount), program, part: &str| {
            let fault = fault(change, program).expect("refused");
            assert!(fault.contains(part), "{fault}");
        };
        says(|account| account.mint = key(7), ids::SPL_TOKEN, "of mint");
        says(
            |account| account.owner = key(7),
            ids::SPL_TOKEN,
            "another wallet",
        );
        says(|account| account.frozen = true, ids::SPL_TOKEN, "frozen");
        says(|_| {}, ids::TOKEN_2022, "other token program");
        says(|_| {}, key(8), "no token account");
    }
}

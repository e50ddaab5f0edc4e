//! Holdings: the user's token accounts, checked against what a swap requires of them.

use cpmm::{TokenAccount, TokenProgram, instruction::SwapAccounts};
use sluice_transaction::{Route, costs::Costs, rent::Rent};
use solana_pubkey::Pubkey;

use super::{executable::ExecutableSwap, request::Swap};
use crate::{
    error::SwapRefusal,
    rpc::{HeldAccount, SwapAccountsRead, is_system},
};

/// The token accounts as they are now; `None` where one is yet to be created.
pub struct Holdings {
    /// The account that pays.
    pub input: Option<TokenAccount>,
    /// The account between two pools.
    pub middle: Option<TokenAccount>,
    /// The account that receives.
    pub output: Option<TokenAccount>,
}

impl Holdings {
    /// Checks what was found.
    ///
    /// # Errors
    /// [`SwapRefusal::TokenAccountUnusable`] when the chain would refuse one of them, or the destination that was named
    /// does not exist.
    pub fn check(
        swap: &Swap,
        executable: &ExecutableSwap,
        found: &SwapAccountsRead,
    ) -> Result<Self, SwapRefusal> {
        let (first, last) = (executable.route.first(), executable.route.last());
        let owner = executable.receiver.unwrap_or(swap.user);
        let whose = if executable.receiver.is_some() {
            "receiver"
        } else {
            "userPublicKey"
        };
        let destination = swap.destination.map(|_| "destinationTokenAccount");
        let output = RequiredAccount {
            field: destination.unwrap_or(whose),
            owner: (owner, whose),
            address: last.output_token_account,
            mint: last.output_mint,
            program: last.output_token_program,
        };
        let input = RequiredAccount::input(first).check(found.input.as_ref())?;
        let middle = match &executable.route {
            Route::TwoHops(_) => RequiredAccount::input(last).check(found.middle.as_ref())?,
            Route::ExactIn(_) | Route::ExactOut(_) => None,
        };
        let held = output.check(found.output.as_ref())?;
        if swap.destination.is_some() && held.is_none() {
            return Err(output.unusable("does not exist; create it first, or leave the field out"));
        }
        Ok(Self {
            input,
            middle,
            output: held,
        })
    }

    /// Refuses a swap of more than the user holds. A transaction, unlike the bare instruction, also costs lamports: `paid`
    /// are these costs, of which what is wrapped adds to the input, and what the wallets hold.
    ///
    /// # Errors
    /// [`SwapRefusal::InsufficientBalance`].
    pub fn require_balance(
        &self,
        executable: &ExecutableSwap,
        paid: Option<(&Costs, &SwapAccountsRead)>,
    ) -> Result<(), SwapRefusal> {
        let held = self.input.map_or(0, |account| account.amount);
        let wrapped = paid.map_or(0, |(costs, _)| costs.wrapped);
        let mint = executable.route.first().input_mint;
        let unit = || format!("smallest units of {mint}");
        require(
            held.saturating_add(wrapped),
            executable.terms.amount_in,
            unit,
        )?;
        let Some((costs, found)) = paid else {
            return Ok(());
        };
        require(found.lamports, costs.required_of_user, || {
            "lamports".to_owned()
        })?;
        require(found.fee_payer_lamports, costs.required, || {
            "lamports".to_owned()
        })
    }
}

/// Refuses a receiver that could not take native SOL: one that is no wallet, or one so empty that what arrives at least
/// would not exempt it from rent, which the chain allows no account.
///
/// # Errors
/// [`SwapRefusal::ReceiverUnusable`].
pub fn check_receiver(
    found: Option<&HeldAccount>,
    unwrapped: Option<u64>,
    rent: Rent,
) -> Result<(), SwapRefusal> {
    if found.is_some_and(|held| TokenProgram::from_id(&held.program).is_some()) {
        let fault = "is an account of a token program; give the wallet that owns it".to_owned();
        return Err(SwapRefusal::ReceiverUnusable { fault });
    }
    let (Some(arrives), true) = (unwrapped, found.is_none_or(is_system)) else {
        return Ok(());
    };
    let (held, needed) = (found.map_or(0, |held| held.lamports), rent.exempt(0));
    if held.saturating_add(arrives) >= needed {
        return Ok(());
    }
    let fault = format!(
        "holds {held} lamports, and with {arrives} more the chain would refuse it, which asks for {needed}; swap more, \
         or give it lamports first"
    );
    Err(SwapRefusal::ReceiverUnusable { fault })
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
    /// The wallet that must own it, and the field that names it.
    owner: (Pubkey, &'static str),
    address: Pubkey,
    mint: Pubkey,
    program: Pubkey,
}

impl RequiredAccount {
    /// The user's account that pays into a pool.
    const fn input(swap: &SwapAccounts) -> Self {
        Self {
            field: "userPublicKey",
            owner: (swap.payer, "userPublicKey"),
            address: swap.input_token_account,
            mint: swap.input_mint,
            program: swap.input_token_program,
        }
    }

    fn unusable(&self, fault: impl Into<String>) -> SwapRefusal {
        SwapRefusal::TokenAccountUnusable {
            field: self.field,
            account: self.address.to_string(),
            fault: fault.into(),
        }
    }

    fn check(&self, found: Option<&HeldAccount>) -> Result<Option<TokenAccount>, SwapRefusal> {
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
        let (owner, field) = self.owner;
        if account.owner != owner {
            let fault = format!("belongs to another wallet; give one of {field}'s");
            return Err(self.unusable(fault));
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
            owner: (key(2), "userPublicKey"),
            address: key(9),
            mint: key(1),
            program: ids::SPL_TOKEN,
        };
        let checked = required.check(Some(&found));
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

    #[test]
    fn a_receiver_of_sol_must_be_a_wallet_that_the_chain_lets_be() {
        let rent = Rent {
            lamports_per_byte: 6_960,
        };
        let exempt = rent.exempt(0);
        let held = |program, lamports| HeldAccount {
            program,
            lamports,
            data: Vec::new(),
        };
        let fault = |found: Option<HeldAccount>, arrives| {
            let checked = check_receiver(found.as_ref(), arrives, rent);
            checked.err().map(|error| error.to_string())
        };
        assert_eq!(fault(None, None), None, "tokens arrive");
        assert_eq!(fault(None, Some(exempt)), None);
        assert!(fault(None, Some(exempt - 1)).is_some());
        let system = Pubkey::default();
        assert_eq!(fault(Some(held(system, exempt)), Some(1)), None);
        assert_eq!(fault(Some(held(system, 1)), Some(exempt - 1)), None);
        assert!(fault(Some(held(system, 1)), Some(exempt - 2)).is_some());
        for program in [ids::SPL_TOKEN, ids::TOKEN_2022] {
            assert!(fault(Some(held(program, exempt)), None).is_some());
        }
        assert_eq!(fault(Some(held(key(7), 1)), Some(1)), None, "a program's");
    }
}

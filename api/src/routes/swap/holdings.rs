//! Holdings: the user's token accounts, checked against what a swap requires of them.

use cpmm::{TokenAccount, TokenAccountRules, TokenProgram, instruction::SwapAccounts};
use sluice_transaction::{Route, costs::Costs, rent::Rent};
use solana_pubkey::Pubkey;

use super::{
    executable::{ExecutableSwap, wraps_sol},
    request::Swap,
};
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
    /// Whether the platform's account of the input token is there.
    pub platform_account: bool,
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
            moves: Moves::In,
        };
        let paying = RequiredAccount {
            field: swap
                .source
                .map_or("userPublicKey", |_| "sourceTokenAccount"),
            ..RequiredAccount::input(first)
        };
        let input = paying.check(found.input.as_ref())?;
        if swap.source.is_some() && input.is_none() {
            return Err(paying.unusable(ABSENT));
        }
        let middle = match &executable.route {
            Route::TwoHops(_) => {
                let between = RequiredAccount {
                    moves: Moves::InAndOut,
                    ..RequiredAccount::input(last)
                };
                between.check(found.middle.as_ref())?
            }
            Route::ExactIn(_) | Route::ExactOut(_) => None,
        };
        let held = output.check(found.output.as_ref())?;
        if swap.destination.is_some() && held.is_none() {
            return Err(output.unusable(ABSENT));
        }
        Ok(Self {
            input,
            middle,
            output: held,
            platform_account: check_platform_account(swap, executable, found)?,
        })
    }

    /// Refuses a swap of more than the user holds, or than its transaction `costs`, of which what is wrapped adds to the input.
    ///
    /// # Errors
    /// [`SwapRefusal::InsufficientBalance`].
    pub fn require_balance(
        &self,
        swap: &Swap,
        executable: &ExecutableSwap,
        costs: &Costs,
        found: &SwapAccountsRead,
    ) -> Result<(), SwapRefusal> {
        let held = self.input.map_or(0, |account| account.amount);
        let mint = executable.route.first().input_mint;
        let unit = || format!("smallest units of {mint}");
        let share = executable.platform_share.filter(|_| !wraps_sol(swap));
        let needed = share.map_or(0, |share| share.amount);
        let needed = executable.terms.amount_in.saturating_add(needed);
        require(held.saturating_add(costs.wrapped), needed, unit)?;
        require(found.lamports, costs.required_of_user, || {
            "lamports".to_owned()
        })?;
        require(found.fee_payer_lamports, costs.required, || {
            "lamports".to_owned()
        })
    }
}

/// Whether the platform's account of the input token is there, where it is paid in tokens.
fn check_platform_account(
    swap: &Swap,
    executable: &ExecutableSwap,
    found: &SwapAccountsRead,
) -> Result<bool, SwapRefusal> {
    let (Some(platform), Some(account)) = (swap.platform, executable.platform_account) else {
        return Ok(false);
    };
    if wraps_sol(swap) {
        return Ok(false);
    }
    let paid = RequiredAccount {
        field: "feeWallet",
        owner: (platform.wallet, "feeWallet"),
        address: account.address,
        moves: Moves::In,
        ..RequiredAccount::input(executable.route.first())
    };
    let there = paid.check(found.platform_account.as_ref())?;
    Ok(there.is_some())
}

/// Why a wallet could not take what is for it: it is none, or it is so empty that the native SOL that `arrives` would
/// not exempt it from rent, which the chain allows no account.
pub fn wallet_fault(
    found: Option<&HeldAccount>,
    arrives: Option<u64>,
    rent: Rent,
) -> Option<String> {
    if found.is_some_and(|held| TokenProgram::from_id(&held.program).is_some()) {
        return Some("is an account of a token program; give the wallet that owns it".to_owned());
    }
    let arrives = arrives.filter(|_| found.is_none_or(is_system))?;
    let (held, needed) = (found.map_or(0, |held| held.lamports), rent.exempt(0));
    (held.saturating_add(arrives) < needed).then(|| {
        format!(
            "holds {held} lamports, and with {arrives} more the chain would refuse it, which asks for {needed}; swap \
             more, or give it lamports first"
        )
    })
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

/// What is wrong with a named account that is not there.
const ABSENT: &str = "does not exist; create it first, or leave the field out";

/// How a swap moves the tokens of an account.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moves {
    In,
    Out,
    InAndOut,
}

impl Moves {
    /// Why the token program would refuse it.
    const fn fault(self, rules: TokenAccountRules) -> Option<&'static str> {
        if rules.is_non_transferable {
            return Some("is of a mint whose tokens cannot be transferred; swap another");
        }
        if rules.requires_memo && !matches!(self, Self::Out) {
            return Some(
                "requires a memo with each transfer into it, and the exchange writes none; disable that, or name another \
                 account",
            );
        }
        if rules.guards_against_cpi && !matches!(self, Self::In) {
            return Some(
                "lets no program move its tokens (CPI guard); disable that guard before the swap, or swap from another account",
            );
        }
        None
    }
}

/// A token account that a swap needs.
#[derive(Clone, Copy)]
struct RequiredAccount {
    /// The field that leads to it.
    field: &'static str,
    /// The wallet that must own it, and the field that names it.
    owner: (Pubkey, &'static str),
    address: Pubkey,
    mint: Pubkey,
    program: Pubkey,
    moves: Moves,
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
            moves: Moves::Out,
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
        if let Some(fault) = self.moves.fault(TokenAccountRules::decode(&found.data)) {
            return Err(self.unusable(fault));
        }
        Ok(Some(account))
    }
}

#[cfg(test)]
mod tests;

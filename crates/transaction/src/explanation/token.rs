//! Instructions of the token programs and of the associated token program, in words (pure).

use solana_pubkey::Pubkey;
use spl_token_interface::instruction::{AuthorityType, TokenInstruction};

use super::meaning::{Accounts, Meaning, Spent};
use crate::{account_creation::AssociatedInstruction, planned_instruction::manifest};

/// Why an instruction that lets another wallet spend is looked at twice.
const DELEGATED: &str = "It lets another wallet spend these tokens later.";

/// Why one that gives an account or a mint away is.
const GIVEN_AWAY: &str = "It gives an authority over an account or a mint to somebody else.";

/// The meaning of an instruction that both token programs have.
pub(super) fn read(data: &[u8], accounts: Accounts<'_>) -> Option<Meaning> {
    use TokenInstruction as T;
    let at = |position| accounts.at(position);
    Some(match T::unpack(data).ok()? {
        T::Transfer { amount } => {
            let roles = &["source", "destination", "owner"];
            let says = format!(
                "moves {amount} tokens, smallest units, from {} to {}",
                at(0),
                at(1)
            );
            moving("transfer", roles, says, amount, (accounts.key(0), None))
        }
        T::TransferChecked { amount, decimals } => {
            let roles = &["source", "mint", "destination", "owner"];
            let says = format!(
                "moves {amount} of {}, smallest units, from {} to {}",
                at(1),
                at(0),
                at(2)
            );
            let from = (accounts.key(0), accounts.key(1));
            moving("transferChecked", roles, says, amount, from).with("decimals", decimals)
        }
        T::SyncNative => {
            let says = format!("counts the SOL that {} was sent as wrapped SOL", at(0));
            Meaning::new("syncNative", &["account"], says)
        }
        T::CloseAccount => {
            let roles = &["account", "destination", "owner"];
            let says = format!(
                "closes {}, and pays its rent, and the SOL in it if it is wrapped, to {}",
                at(0),
                at(1)
            );
            Meaning::new("closeAccount", roles, says)
        }
        T::UnwrapLamports { amount } => {
            let roles = &["source", "destination", "owner"];
            let amount: Option<u64> = amount.into();
            let how_much = amount.map_or("all".to_owned(), |amount| amount.to_string());
            let says = format!(
                "pays {how_much} of the wrapped SOL in {} out to {} as native SOL",
                at(0),
                at(1)
            );
            Meaning::new("unwrapLamports", roles, says).with("amount", how_much)
        }
        T::InitializeAccount => initialized("initializeAccount", &at(0), &at(1), at(2)),
        T::InitializeAccount2 { owner } => {
            initialized("initializeAccount2", &at(0), &at(1), owner.to_string())
        }
        T::InitializeAccount3 { owner } => {
            initialized("initializeAccount3", &at(0), &at(1), owner.to_string())
        }
        other => return rarer(&other, accounts),
    })
}

fn moving(
    name: &'static str,
    roles: &'static [&'static str],
    says: String,
    amount: u64,
    (from, mint): (Option<Pubkey>, Option<Pubkey>),
) -> Meaning {
    Meaning::new(name, roles, says)
        .with("amount", amount)
        .spending(from, Spent::Tokens(mint), amount)
}

fn initialized(name: &'static str, account: &str, mint: &str, owner: String) -> Meaning {
    let says = format!("makes {account} a token account of {mint} that {owner} owns");
    Meaning::new(name, &["account", "mint"], says).with("owner", owner)
}

/// What no swap has.
fn rarer(instruction: &TokenInstruction<'_>, accounts: Accounts<'_>) -> Option<Meaning> {
    use TokenInstruction as T;
    let at = |position| accounts.at(position);
    Some(match instruction {
        T::Approve { amount } => {
            let says = format!(
                "lets {} spend up to {amount} tokens, smallest units, of {}",
                at(1),
                at(0)
            );
            let roles = &["source", "delegate", "owner"];
            moving("approve", roles, says, *amount, (accounts.key(0), None)).cautious(DELEGATED)
        }
        T::ApproveChecked { amount, .. } => {
            let says = format!(
                "lets {} spend up to {amount} of {}, smallest units, of {}",
                at(2),
                at(1),
                at(0)
            );
            let roles = &["source", "mint", "delegate", "owner"];
            let from = (accounts.key(0), accounts.key(1));
            moving("approveChecked", roles, says, *amount, from).cautious(DELEGATED)
        }
        T::SetAuthority {
            authority_type,
            new_authority,
        } => {
            let authority = match authority_type {
                AuthorityType::MintTokens => "to mint tokens",
                AuthorityType::FreezeAccount => "to freeze accounts",
                AuthorityType::AccountOwner => "of the owner",
                AuthorityType::CloseAccount => "to close it",
            };
            let new: Option<Pubkey> = (*new_authority).into();
            let new = new.map_or("nobody".to_owned(), |new| new.to_string());
            let says = format!("gives the authority {authority} over {} to {new}", at(0));
            Meaning::new("setAuthority", &["account", "authority"], says)
                .with("newAuthority", new)
                .cautious(GIVEN_AWAY)
        }
        T::Burn { amount } => {
            let says = format!("destroys {amount} tokens, smallest units, of {}", at(0));
            let roles = &["account", "mint", "owner"];
            moving(
                "burn",
                roles,
                says,
                *amount,
                (accounts.key(0), accounts.key(1)),
            )
        }
        T::BurnChecked { amount, .. } => {
            let says = format!("destroys {amount} tokens, smallest units, of {}", at(0));
            let roles = &["account", "mint", "owner"];
            let from = (accounts.key(0), accounts.key(1));
            moving("burnChecked", roles, says, *amount, from)
        }
        T::MintTo { amount } | T::MintToChecked { amount, .. } => {
            let says = format!("mints {amount} of {}, smallest units, to {}", at(0), at(1));
            Meaning::new("mintTo", &["mint", "account", "authority"], says).with("amount", amount)
        }
        T::Revoke => {
            let says = format!("lets nobody else spend from {} any more", at(0));
            Meaning::new("revoke", &["source", "owner"], says)
        }
        _ => return None,
    })
}

/// The meaning of an instruction of the associated token program. One without data creates, as one of the oldest kind.
pub(super) fn associated(data: &[u8], accounts: Accounts<'_>) -> Option<Meaning> {
    const CREATE: u8 = AssociatedInstruction::Create as u8;
    const CREATE_IDEMPOTENT: u8 = AssociatedInstruction::CreateIdempotent as u8;
    let (name, unless) = match data {
        [] | [CREATE] => ("create", ", and fails if it is there already"),
        [CREATE_IDEMPOTENT] => ("createIdempotent", ", unless it is there already"),
        _ => return None,
    };
    let (_, roles) = manifest::CREATE_TOKEN_ACCOUNT.parts();
    let says = format!(
        "creates {}, the token account of {} for {}{unless}; {} pays its rent",
        accounts.at(1),
        accounts.at(2),
        accounts.at(3),
        accounts.at(0)
    );
    Some(Meaning::new(name, roles, says))
}

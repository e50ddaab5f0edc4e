//! Instructions of the system program, in words (pure).

use solana_pubkey::Pubkey;
use solana_system_interface::instruction::SystemInstruction;

use super::meaning::{Accounts, Meaning, Spent};

/// Why an instruction that hands an account over is looked at twice.
const HANDED_OVER: &str = "It hands an account over to another program.";

/// Why one that changes or empties a nonce account is.
const NONCE_AUTHORITY: &str = "It changes a nonce account beyond advancing it.";

/// The meaning of an instruction of the system program.
pub(super) fn read(data: &[u8], accounts: Accounts<'_>) -> Option<Meaning> {
    let instruction: SystemInstruction = bincode::deserialize(data).ok()?;
    Some(match instruction {
        SystemInstruction::Transfer { lamports } => transfer(lamports, accounts),
        SystemInstruction::CreateAccount {
            lamports,
            space,
            owner,
        } => created(
            "createAccount",
            &["payer", "account"],
            (lamports, space, owner),
            accounts,
        ),
        SystemInstruction::CreateAccountAllowPrefund {
            lamports,
            space,
            owner,
        } => {
            let roles = &["account", "payer"];
            let says = format!(
                "creates {} of {space} bytes for the program {owner}, with up to {lamports} lamports of {}",
                accounts.at(0),
                accounts.at(1)
            );
            Meaning::new("createAccountAllowPrefund", roles, says)
                .with("lamports", lamports)
                .with("space", space)
                .with("owner", owner)
                .spending(accounts.key(1), Spent::Lamports, lamports)
        }
        SystemInstruction::CreateAccountWithSeed {
            lamports,
            space,
            owner,
            ..
        } => {
            let roles = &["payer", "account", "base"];
            created(
                "createAccountWithSeed",
                roles,
                (lamports, space, owner),
                accounts,
            )
        }
        SystemInstruction::AdvanceNonceAccount => {
            let (_, roles) = crate::planned_instruction::manifest::ADVANCE_NONCE.parts();
            let says = format!(
                "takes the value of the nonce account {}, so that the transaction lands once, whenever it is sent",
                accounts.at(0)
            );
            Meaning::new("advanceNonceAccount", roles, says)
        }
        other => rarer(other, accounts),
    })
}

fn transfer(lamports: u64, accounts: Accounts<'_>) -> Meaning {
    let says = format!(
        "moves {lamports} lamports from {} to {}",
        accounts.at(0),
        accounts.at(1)
    );
    Meaning::new("transfer", &["from", "to"], says)
        .with("lamports", lamports)
        .spending(accounts.key(0), Spent::Lamports, lamports)
}

fn created(
    name: &'static str,
    roles: &'static [&'static str],
    (lamports, space, owner): (u64, u64, Pubkey),
    accounts: Accounts<'_>,
) -> Meaning {
    let says = format!(
        "creates {} of {space} bytes for the program {owner}, with {lamports} lamports of {}",
        accounts.at(1),
        accounts.at(0)
    );
    Meaning::new(name, roles, says)
        .with("lamports", lamports)
        .with("space", space)
        .with("owner", owner)
        .spending(accounts.key(0), Spent::Lamports, lamports)
}

/// What no swap has.
fn rarer(instruction: SystemInstruction, accounts: Accounts<'_>) -> Meaning {
    let account = accounts.at(0);
    match instruction {
        SystemInstruction::WithdrawNonceAccount(lamports) => Meaning::new(
            "withdrawNonceAccount",
            &["nonceAccount", "to"],
            format!(
                "pays {lamports} lamports of the nonce account {account} to {}",
                accounts.at(1)
            ),
        )
        .with("lamports", lamports)
        .spending(accounts.key(0), Spent::Lamports, lamports)
        .cautious(NONCE_AUTHORITY),
        SystemInstruction::TransferWithSeed { lamports, .. } => Meaning::new(
            "transferWithSeed",
            &["from", "base", "to"],
            format!(
                "moves {lamports} lamports from {account} to {}",
                accounts.at(2)
            ),
        )
        .with("lamports", lamports)
        .spending(accounts.key(0), Spent::Lamports, lamports),
        SystemInstruction::InitializeNonceAccount(authority) => Meaning::new(
            "initializeNonceAccount",
            &["nonceAccount"],
            format!("makes {account} a nonce account of {authority}"),
        )
        .with("authority", authority),
        SystemInstruction::AuthorizeNonceAccount(authority) => Meaning::new(
            "authorizeNonceAccount",
            &["nonceAccount"],
            format!("gives the nonce account {account} to {authority}"),
        )
        .with("authority", authority)
        .cautious(NONCE_AUTHORITY),
        SystemInstruction::Assign { owner } => assigned("assign", owner, &account),
        SystemInstruction::AssignWithSeed { owner, .. } => {
            assigned("assignWithSeed", owner, &account)
        }
        SystemInstruction::AllocateWithSeed { owner, space, .. } => {
            assigned("allocateWithSeed", owner, &account).with("space", space)
        }
        SystemInstruction::Allocate { space } => {
            let says = format!("gives {account} {space} bytes");
            Meaning::new("allocate", &["account"], says).with("space", space)
        }
        _ => Meaning::new(
            "upgradeNonceAccount",
            &["nonceAccount"],
            format!("upgrades the nonce account {account}"),
        ),
    }
}

fn assigned(name: &'static str, owner: Pubkey, account: &str) -> Meaning {
    let says = format!("hands {account} over to the program {owner}");
    Meaning::new(name, &["account"], says)
        .with("owner", owner)
        .cautious(HANDED_OVER)
}

//! Programs that are known here, and what their instructions mean (pure).

use cpmm::ids;
use solana_pubkey::{Pubkey, pubkey};
use swap_guard_interface::{ASSOCIATED_TOKEN_PROGRAM, PROGRAM_ID};

use super::{
    budget,
    meaning::{Accounts, Meaning},
    swap, system, token,
};

/// The program that writes notes into a transaction.
const MEMO: Pubkey = pubkey!("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");

/// Longest note that is repeated, characters.
const MOST_OF_A_NOTE: usize = 200;

/// The meaning of an instruction, where the exchange's program is `exchange`; `None` where it is not known.
pub(super) fn meaning(
    program: &Pubkey,
    exchange: &Pubkey,
    data: &[u8],
    accounts: Accounts<'_>,
) -> Option<Meaning> {
    match *program {
        PROGRAM_ID => swap::guarded(data, accounts),
        _ if program == exchange => swap::unguarded(data, accounts),
        // The first instructions of Token-2022 are those of SPL Token; its others are not known here.
        ids::SPL_TOKEN | ids::TOKEN_2022 => token::read(data, accounts),
        ASSOCIATED_TOKEN_PROGRAM => token::associated(data, accounts),
        solana_system_interface::program::ID => system::read(data, accounts),
        solana_compute_budget_interface::ID => budget::meaning(data),
        MEMO => note(data),
        _ => None,
    }
}

/// What a program is called here, where the exchange's is `exchange`.
pub(super) fn name(program: &Pubkey, exchange: &Pubkey) -> Option<&'static str> {
    Some(match *program {
        PROGRAM_ID => "guard",
        _ if program == exchange => "exchange",
        ids::SPL_TOKEN => "token",
        ids::TOKEN_2022 => "token2022",
        ASSOCIATED_TOKEN_PROGRAM => "associatedToken",
        solana_system_interface::program::ID => "system",
        solana_compute_budget_interface::ID => "computeBudget",
        MEMO => "memo",
        _ => return None,
    })
}

fn note(data: &[u8]) -> Option<Meaning> {
    let text = std::str::from_utf8(data).ok()?;
    let shown: String = text.chars().take(MOST_OF_A_NOTE).collect();
    let says = "writes a note into the transaction, and moves nothing".to_owned();
    Some(Meaning::new("memo", &[], says).with("text", shown))
}

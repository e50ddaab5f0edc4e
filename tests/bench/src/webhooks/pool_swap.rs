//! Pool swap: a swap of the exchange as the stream sends it, with the accounts, calls, logs and balances of a wallet's transaction.
//!
//! It stands for the transactions of a hot program, of which nothing but the number and the length of its parts counts here: the
//! addresses are made up. It is no longer than those that wallets sign, which create token accounts and wrap SOL besides.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use cpmm::{SWAP_EVENT_DISCRIMINATOR, SWAP_EVENT_LEN, ids};
use sluice_geyser::{InnerInstruction, Instruction, TokenBalance, TransactionUpdate};
use solana_compute_budget_interface as compute_budget;
use solana_pubkey::Pubkey;
use solana_signature::Signature;

/// Keys of the wallet, its two token accounts, the pool, its two vaults, its observations, and the two mints.
const MADE_UP: u8 = 9;

/// Those that are not made up; instructions name them by where they are.
const KNOWN: [Pubkey; 5] = [
    ids::AUTHORITY,
    ids::AMM_CONFIG_0,
    ids::SPL_TOKEN,
    ids::PROGRAM_ID,
    compute_budget::ID,
];
const AUTHORITY: u8 = MADE_UP;
const CONFIG: u8 = MADE_UP + 1;
const TOKEN: u8 = MADE_UP + 2;
const EXCHANGE: u8 = MADE_UP + 3;
const BUDGET: u8 = MADE_UP + 4;

/// The accounts of a swap, in the exchange's order.
const SWAP_ACCOUNTS: [u8; 13] = [0, AUTHORITY, CONFIG, 3, 1, 2, 4, 5, TOKEN, TOKEN, 7, 8, 6];

/// The swap of this number in a slot.
#[must_use]
pub fn pool_swap(slot: u64, number: u64) -> TransactionUpdate {
    let account_keys = keys(slot, number);
    let balances = vec![2_039_280; account_keys.len()];
    let tokens = |amount| token_balances(&account_keys, amount);
    let (pre_token_balances, post_token_balances) = (tokens(1_000_000_000), tokens(999_000_000));
    TransactionUpdate {
        slot,
        index: number,
        signature: Signature::from(bytes(slot, number, 0)),
        is_vote: false,
        error: None,
        account_keys,
        writable: (0..7).collect(),
        instructions: vec![
            call(BUDGET, &[], vec![2; 5]),
            call(BUDGET, &[], vec![3; 9]),
            call(EXCHANGE, &SWAP_ACCOUNTS, vec![143; 24]),
        ],
        inner_instructions: vec![(
            2,
            vec![transfer(&[1, 7, 4, 0]), transfer(&[5, 8, 2, AUTHORITY])],
        )],
        log_messages: logs(),
        logs_missing: false,
        fee: 5_000,
        compute_units: Some(48_211),
        pre_balances: balances.clone(),
        post_balances: balances,
        pre_token_balances,
        post_token_balances,
    }
}

/// Bytes that differ from those of every other slot, number and account.
fn bytes<const N: usize>(slot: u64, number: u64, account: u8) -> [u8; N] {
    let mut bytes = [account.wrapping_mul(29).wrapping_add(101); N];
    bytes[..8].copy_from_slice(&slot.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn key(slot: u64, number: u64, account: u8) -> Pubkey {
    Pubkey::new_from_array(bytes(slot, number, account))
}

fn keys(slot: u64, number: u64) -> Vec<Pubkey> {
    let made_up = (0..MADE_UP).map(|account| key(slot, number, account));
    made_up.chain(KNOWN).collect()
}

fn call(program_index: u8, accounts: &[u8], data: Vec<u8>) -> Instruction {
    Instruction {
        program_index,
        accounts: accounts.to_vec(),
        data,
    }
}

fn transfer(accounts: &[u8]) -> InnerInstruction {
    InnerInstruction {
        program_index: TOKEN,
        accounts: accounts.to_vec(),
        data: vec![12; 10],
        stack_height: Some(2),
    }
}

/// Of the wallet's token accounts and the vaults.
fn token_balances(keys: &[Pubkey], amount: u64) -> Vec<TokenBalance> {
    let owned = [(1, 7, 0), (2, 8, 0), (4, 7, AUTHORITY), (5, 8, AUTHORITY)];
    let key = |at: u8| keys.get(usize::from(at)).copied().unwrap_or_default();
    let balance = |(account_index, mint, owner)| TokenBalance {
        account_index,
        mint: key(mint),
        owner: Some(key(owner)),
        program: Some(ids::SPL_TOKEN),
        amount,
        decimals: 6,
        shown_amount: (amount / 1_000_000).to_string(),
    };
    owned.map(balance).to_vec()
}

fn logs() -> Vec<String> {
    let (exchange, token) = (ids::PROGRAM_ID, ids::SPL_TOKEN);
    let mut event = SWAP_EVENT_DISCRIMINATOR.to_vec();
    event.resize(SWAP_EVENT_LEN, 7);
    let budget = [
        format!("Program {} invoke [1]", compute_budget::ID),
        format!("Program {} success", compute_budget::ID),
    ];
    let transfer = [
        format!("Program {token} invoke [2]"),
        "Program log: Instruction: TransferChecked".to_owned(),
        format!("Program {token} consumed 6238 of 171034 compute units"),
        format!("Program {token} success"),
    ];
    let begun = [
        format!("Program {exchange} invoke [1]"),
        "Program log: Instruction: SwapBaseInput".to_owned(),
        format!("Program data: {}", BASE64.encode(event)),
    ];
    let ended = [
        format!("Program {exchange} consumed 47911 of 199700 compute units"),
        format!("Program {exchange} success"),
    ];
    let before = budget.iter().chain(&budget).chain(&begun);
    let lines = before.chain(&transfer).chain(&transfer).chain(&ended);
    lines.cloned().collect()
}

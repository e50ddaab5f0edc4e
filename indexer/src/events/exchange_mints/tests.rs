//! Mints of events in transactions as the chain records them: swaps of a router's, liquidity beside them.

use sha2::{Digest, Sha256};
use sluice_geyser::{InnerInstruction, Instruction as TopLevel};

use super::*;
use crate::{events::program_events::program_events, slots::slot_events::fixtures};

/// Names of the accounts, in the order of the transaction; the exchange has its own address, the others their position.
const ACCOUNTS: [&str; 16] = [
    "user",
    "EXCHANGE",
    "ROUTER",
    "TOKEN",
    "BUDGET",
    "authority",
    "config",
    "pool",
    "wallet 0",
    "wallet 1",
    "vault 0",
    "vault 1",
    "mint 0",
    "mint 1",
    "rest",
    "lp mint",
];

fn at(name: &str) -> u8 {
    let position = ACCOUNTS.iter().position(|account| *account == name);
    u8::try_from(position.expect("is named")).expect("few")
}

fn exchange() -> Pubkey {
    "CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C"
        .parse()
        .expect("an address")
}

fn address(name: &str) -> Pubkey {
    if name == "EXCHANGE" {
        return exchange();
    }
    Pubkey::new_from_array([at(name) + 1; 32])
}

/// The accounts of a swap of one token for the other, as the exchange lists them.
fn swap([input, output]: [&str; 2]) -> Vec<u8> {
    let names = [
        "user",
        "authority",
        "config",
        "pool",
        &format!("wallet {input}"),
        &format!("wallet {output}"),
        &format!("vault {input}"),
        &format!("vault {output}"),
        "TOKEN",
        "TOKEN",
        &format!("mint {input}"),
        &format!("mint {output}"),
        "rest",
    ];
    names.iter().map(|name| at(name)).collect()
}

/// The accounts of a deposit or a withdrawal.
fn liquidity() -> Vec<u8> {
    let names = [
        "user",
        "authority",
        "pool",
        "rest",
        "wallet 0",
        "wallet 1",
        "vault 0",
        "vault 1",
        "TOKEN",
        "TOKEN",
        "mint 0",
        "mint 1",
        "lp mint",
    ];
    names.iter().map(|name| at(name)).collect()
}

fn data(name: &str) -> Vec<u8> {
    let mut data = Sha256::digest(format!("global:{name}"))[..8].to_vec();
    data.extend([0; 16]);
    data
}

fn inner(program: &str, accounts: Vec<u8>, data: Vec<u8>, height: u32) -> InnerInstruction {
    InnerInstruction {
        program_index: at(program),
        accounts,
        data,
        stack_height: Some(height),
    }
}

fn transfer() -> InnerInstruction {
    inner("TOKEN", Vec::new(), vec![12], 3)
}

/// An event of the exchange about the pool, with so many bytes of amounts.
fn logged(name: &str, amounts: usize) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let mut event = Sha256::digest(format!("event:{name}"))[..8].to_vec();
    event.extend(address("pool").to_bytes());
    event.extend(vec![0; amounts]);
    STANDARD.encode(event)
}

/// Logs, with addresses for the names of programs.
fn logs(lines: &[&str]) -> Vec<String> {
    let programs = ["EXCHANGE", "ROUTER", "TOKEN", "BUDGET"];
    let filled = |line: &&str| {
        let line = line
            .replace("SWAP", &logged("SwapEvent", 49))
            .replace("LIQUIDITY", &logged("LpChangeEvent", 57));
        programs.iter().fold(line, |line, program| {
            line.replace(program, &address(program).to_string())
        })
    };
    lines.iter().map(filled).collect()
}

/// A router's two swaps there and back, and a deposit and a withdrawal of the user's own, as the chain records them.
fn transaction() -> TransactionUpdate {
    let top = |program: &str, accounts, data| TopLevel {
        program_index: at(program),
        accounts,
        data,
    };
    let routed = vec![
        inner("EXCHANGE", swap(["0", "1"]), data("swap_base_input"), 2),
        transfer(),
        transfer(),
        inner("EXCHANGE", swap(["1", "0"]), data("swap_base_output"), 2),
        transfer(),
        transfer(),
    ];
    let swapped = [
        "Program EXCHANGE invoke [2]",
        "Program log: Instruction: SwapBaseInput",
        "Program data: SWAP",
        "Program TOKEN invoke [3]",
        "Program TOKEN success",
        "Program EXCHANGE success",
    ];
    let changed = [
        "Program EXCHANGE invoke [1]",
        "Program TOKEN invoke [2]",
        "Program TOKEN success",
        "Program data: LIQUIDITY",
        "Program EXCHANGE success",
    ];
    let lines: Vec<&str> = [
        &["Program BUDGET invoke [1]", "Program BUDGET success"][..],
        &["Program ROUTER invoke [1]"],
        &swapped,
        &swapped,
        &["Program ROUTER success"],
        &changed,
        &changed,
    ]
    .concat();
    TransactionUpdate {
        account_keys: ACCOUNTS.map(address).to_vec(),
        instructions: vec![
            top("BUDGET", Vec::new(), vec![2]),
            top("ROUTER", Vec::new(), vec![9; 8]),
            top("EXCHANGE", liquidity(), data("deposit")),
            top("EXCHANGE", liquidity(), data("withdraw")),
        ],
        inner_instructions: vec![(1, routed), (2, vec![transfer()]), (3, vec![transfer()])],
        log_messages: logs(&lines),
        ..fixtures::transaction(7, 1)
    }
}

/// The mints of each event of a transaction, by their names.
fn found(transaction: &TransactionUpdate) -> Vec<Option<Mints>> {
    let idls = Idls::built_in().expect("understood");
    let events = program_events(transaction);
    let mints = events
        .iter()
        .map(|event| exchange_mints(transaction, event, &idls));
    mints.collect()
}

fn of_swap([input, output]: [&str; 2]) -> Option<Mints> {
    Some(vec![
        ("inputMint", address(input)),
        ("outputMint", address(output)),
    ])
}

fn of_liquidity() -> Option<Mints> {
    Some(vec![
        ("token0Mint", address("mint 0")),
        ("token1Mint", address("mint 1")),
        ("lpMint", address("lp mint")),
    ])
}

#[test]
fn each_event_has_the_mints_of_the_instruction_that_emitted_it() {
    let there = of_swap(["mint 0", "mint 1"]);
    let back = of_swap(["mint 1", "mint 0"]);
    let expected = [there, back, of_liquidity(), of_liquidity()];
    assert_eq!(found(&transaction()), expected);
}

#[test]
fn what_is_not_found_has_none() {
    // Without what programs invoked, the first run would be taken for the deposit, at another depth.
    let mut unrecorded = transaction();
    unrecorded.inner_instructions.clear();
    assert_eq!(found(&unrecorded), [None, None, None, None]);

    let mut of_another_pool = transaction();
    of_another_pool.account_keys[usize::from(at("pool"))] = Pubkey::new_from_array([99; 32]);
    assert_eq!(found(&of_another_pool), [None, None, None, None]);

    let mut unknown = transaction();
    unknown.instructions[2].data = data("another");
    unknown.instructions[3].accounts.truncate(12);
    assert_eq!(found(&unknown)[2..], [None, None]);

    let mut of_another_program = transaction();
    let elsewhere = Pubkey::new_from_array([98; 32]);
    of_another_program.account_keys[usize::from(at("EXCHANGE"))] = elsewhere;
    for line in &mut of_another_program.log_messages {
        *line = line.replace(&exchange().to_string(), &elsewhere.to_string());
    }
    assert_eq!(found(&of_another_program), [None, None, None, None]);
}

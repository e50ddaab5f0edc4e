//! `swap-guard-interface` against the generated IDL and the binary.

use cpmm::{Direction, PerToken};
use serde_json::Value;
use sluice_testkit::{
    pool::PoolSpec,
    svm::{Svm, program},
};
use solana_pubkey::Pubkey;
use swap_guard_interface::{
    GUARDED_SWAP_DISCRIMINATOR, GUARDED_SWAP_LEN, GuardError, GuardedSwap, PROGRAM_ID, SwapArgs,
    swap,
};

const IDL: &str = include_str!("../../../../../idls/swap_guard.json");

fn idl() -> Value {
    serde_json::from_str(IDL).expect("the IDL is JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().expect("a list")
}

fn name(value: &Value) -> &str {
    value["name"].as_str().expect("a name")
}

fn discriminator(item: &Value) -> Vec<u8> {
    serde_json::from_value(item["discriminator"].clone()).expect("a list of bytes")
}

/// The one item of a list.
fn only<'a>(value: &'a Value, key: &str) -> &'a Value {
    let [item] = list(value, key) else {
        panic!("not one of {key}");
    };
    item
}

#[test]
fn the_instruction_s_data_is_what_the_idl_says() {
    let idl = idl();
    let args = SwapArgs {
        amount_in: 0x0102_0304_0506_0708,
        minimum_out: u64::MAX - 1,
        expiry_slot: 9,
    };
    let instruction = only(&idl, "instructions");
    let mut data = discriminator(instruction);
    for arg in list(instruction, "args") {
        assert_eq!(arg["type"], "u64");
        let value = match name(arg) {
            "amount_in" => args.amount_in,
            "minimum_out" => args.minimum_out,
            "expiry_slot" => args.expiry_slot,
            other => panic!("argument {other}"),
        };
        data.extend_from_slice(&value.to_le_bytes());
    }
    let mut svm = Svm::new();
    let pool = svm.open("pool", &PoolSpec::plain());
    let user = svm.fund("user", &pool, PerToken::new(0, 0));
    let accounts = pool.swap_accounts(&user, Direction::ZeroForOne);
    assert_eq!(swap(&accounts, args).data, data);
}

#[test]
fn the_instruction_s_accounts_are_what_the_idl_says() {
    let idl = idl();
    let mut svm = Svm::new();
    let pool = svm.open("pool", &PoolSpec::plain());
    let user = svm.fund("user", &pool, PerToken::new(0, 0));
    let accounts = pool.swap_accounts(&user, Direction::ZeroForOne);
    let built = sluice_testkit::pool::guarded_swap(&accounts, 1, 1);
    assert_eq!(built.program_id, PROGRAM_ID);
    assert_eq!(idl["address"], PROGRAM_ID.to_string());

    let described = list(only(&idl, "instructions"), "accounts");
    assert_eq!(built.accounts.len(), described.len());
    for (meta, account) in built.accounts.iter().zip(described) {
        let flag = |key: &str| account[key].as_bool().unwrap_or(false);
        let name = name(account);
        assert_eq!(meta.is_signer, flag("signer"), "{name}");
        assert_eq!(meta.is_writable, flag("writable"), "{name}");
        let address = match name {
            "user" => accounts.payer,
            "exchange_program" => cpmm::ids::PROGRAM_ID,
            "authority" => cpmm::ids::AUTHORITY,
            "amm_config" => accounts.amm_config,
            "pool_state" => accounts.pool_state,
            "input_token_account" => accounts.input_token_account,
            "output_token_account" => accounts.output_token_account,
            "input_vault" => accounts.input_vault,
            "output_vault" => accounts.output_vault,
            "input_token_program" => accounts.input_token_program,
            "output_token_program" => accounts.output_token_program,
            "input_mint" => accounts.input_mint,
            "output_mint" => accounts.output_mint,
            "observation_state" => accounts.observation_state,
            other => panic!("account {other}"),
        };
        assert_eq!(meta.pubkey, address, "{name}");
    }
}

#[test]
fn the_errors_have_the_codes_and_names_of_the_idl() {
    let idl = idl();
    let described: Vec<_> = list(&idl, "errors")
        .iter()
        .map(|error| (error["code"].clone(), name(error).to_owned()))
        .collect();
    let ours = GuardError::ALL.map(|error| (Value::from(error.code()), format!("{error:?}")));
    assert_eq!(described, ours);
}

#[test]
fn the_event_is_decoded_as_the_idl_says() {
    let idl = idl();
    let event = only(&idl, "events");
    assert_eq!(discriminator(event), GUARDED_SWAP_DISCRIMINATOR);
    let mut types = list(&idl, "types").iter();
    let described = types.find(|described| name(described) == name(event));
    let fields = list(&described.expect("the event's type")["type"], "fields");

    // Every byte of a field is its number, so that a decoder that mixes fields up is found out.
    let mut data = GUARDED_SWAP_DISCRIMINATOR.to_vec();
    for (number, field) in (1_u8..).zip(fields) {
        let length = match field["type"].as_str() {
            Some("pubkey") => 32,
            Some("u64") => 8,
            other => panic!("type {other:?}"),
        };
        data.extend(vec![number; length]);
    }
    assert_eq!(data.len(), GUARDED_SWAP_LEN);
    let number = |wanted: &str| {
        let mut numbered = (1_u8..).zip(fields);
        let found = numbered.find(|(_, field)| name(field) == wanted);
        found.expect("the IDL has the field").0
    };
    let address = |name| Pubkey::from([number(name); 32]);
    let amount = |name| u64::from_le_bytes([number(name); 8]);
    let expected = GuardedSwap {
        user: address("user"),
        pool: address("pool"),
        input_mint: address("input_mint"),
        output_mint: address("output_mint"),
        amount_in: amount("amount_in"),
        minimum_out: amount("minimum_out"),
        received: amount("received"),
        slot: amount("slot"),
    };
    assert_eq!(GuardedSwap::decode(&data), Some(expected));
}

#[test]
fn the_binary_says_how_to_report_what_is_wrong_with_it() {
    let binary = program("swap_guard");
    for text in [
        &b"=======BEGIN SECURITY.TXT V1=======\0name\0"[..],
        b"\0project_url\0",
        b"\0contacts\0",
        b"\0policy\0",
        b"\0=======END SECURITY.TXT V1=======\0",
    ] {
        assert!(
            binary.windows(text.len()).any(|window| window == text),
            "{:?} is missing",
            String::from_utf8_lossy(text)
        );
    }
}

//! `swap-guard-interface` against the generated IDL and the binary.

use serde_json::Value;
use sluice_testkit::{
    names::address,
    pool::PoolSpec,
    route::Route,
    svm::{Svm, program},
};
use solana_instruction::Instruction;
use solana_pubkey::Pubkey;
use swap_guard_interface::{
    ExactOutArgs, GUARDED_SWAP_DISCRIMINATOR, GUARDED_SWAP_LEN, GuardError, GuardedSwap,
    PROGRAM_ID, SWAPPED_DISCRIMINATOR, SWAPPED_LEN, SwapArgs, Swapped, TwoHopAccounts, swap,
    swap_exact_out, swap_exact_out_to, swap_to, swap_two_hops, swap_two_hops_to,
};

const GUIDE: &str = include_str!("../../../../../docs/guard.md");
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

const SENT: SwapArgs = SwapArgs {
    amount_in: 0x0102_0304_0506_0708,
    minimum_out: u64::MAX - 1,
    expiry_slot: 9,
};

/// Every instruction as `swap-guard-interface` builds it, with its name in the IDL.
fn built() -> (TwoHopAccounts, [(&'static str, Instruction); 6]) {
    let mut svm = Svm::new();
    let route = Route::open(&mut svm, "route", &PoolSpec::plain(), &PoolSpec::plain());
    let accounts = route.fund(&mut svm, "user", [0, 0, 0]).accounts;
    let exact_out = ExactOutArgs {
        maximum_in: SENT.amount_in,
        amount_out: SENT.minimum_out,
        expiry_slot: SENT.expiry_slot,
    };
    let (first, to) = (&accounts.first, &receiver());
    let all = [
        ("swap", swap(first, SENT)),
        ("swap_to", swap_to(first, SENT, to)),
        ("swap_exact_out", swap_exact_out(first, exact_out)),
        ("swap_exact_out_to", swap_exact_out_to(first, exact_out, to)),
        ("swap_two_hops", swap_two_hops(&accounts, SENT)),
        ("swap_two_hops_to", swap_two_hops_to(&accounts, SENT, to)),
    ];
    (accounts, all)
}

fn receiver() -> Pubkey {
    address("receiver")
}

fn described<'a>(idl: &'a Value, wanted: &str) -> &'a Value {
    let mut all = list(idl, "instructions").iter();
    let found = all.find(|instruction| name(instruction) == wanted);
    found.unwrap_or_else(|| panic!("the IDL has no {wanted}"))
}

/// The names that the IDL gives the accounts of an instruction, in their order.
pub fn account_names(instruction: &str) -> Vec<String> {
    let idl = idl();
    let accounts = list(described(&idl, instruction), "accounts").iter();
    accounts.map(|account| name(account).to_owned()).collect()
}

#[test]
fn each_instruction_s_data_is_what_the_idl_says() {
    let idl = idl();
    let (_, all) = built();
    assert_eq!(list(&idl, "instructions").len(), all.len());
    for (wanted, built) in all {
        let instruction = described(&idl, wanted);
        let mut data = discriminator(instruction);
        for arg in list(instruction, "args") {
            match name(arg) {
                "amount_in" | "maximum_in" => data.extend(SENT.amount_in.to_le_bytes()),
                "minimum_out" | "amount_out" => data.extend(SENT.minimum_out.to_le_bytes()),
                "expiry_slot" => data.extend(SENT.expiry_slot.to_le_bytes()),
                "receiver" => {
                    assert_eq!(arg["type"], "pubkey");
                    data.extend(receiver().to_bytes());
                    continue;
                }
                other => panic!("argument {other}"),
            }
            assert_eq!(arg["type"], "u64");
        }
        assert_eq!(built.data, data, "{wanted}");
    }
}

#[test]
fn each_instruction_s_accounts_are_what_the_idl_says() {
    let idl = idl();
    let (accounts, all) = built();
    for (wanted, built) in all {
        assert_eq!(built.program_id, PROGRAM_ID);
        assert_eq!(idl["address"], PROGRAM_ID.to_string());
        let described = list(described(&idl, wanted), "accounts");
        assert_eq!(built.accounts.len(), described.len());
        for (meta, account) in built.accounts.iter().zip(described) {
            let flag = |key: &str| account[key].as_bool().unwrap_or(false);
            let name = name(account);
            assert_eq!(meta.is_signer, flag("signer"), "{name}");
            assert_eq!(meta.is_writable, flag("writable"), "{name}");
            let expected = expected(&accounts, described.len() == 22, name);
            assert_eq!(meta.pubkey, expected, "{name}");
        }
    }
}

/// The account of this name, in one hop or in two.
fn expected(accounts: &TwoHopAccounts, two_hops: bool, name: &str) -> Pubkey {
    let TwoHopAccounts { first, second } = accounts;
    let last = if two_hops { second } else { first };
    let (hop, part) = match name.split_once('_') {
        Some(("first", part)) => (first, part),
        Some(("second", part)) => (second, part),
        _ => (first, name),
    };
    match part {
        "user" => first.payer,
        "exchange_program" => cpmm::ids::PROGRAM_ID,
        "authority" => cpmm::ids::AUTHORITY,
        "amm_config" => hop.amm_config,
        "pool_state" => hop.pool_state,
        "input_vault" => hop.input_vault,
        "output_vault" => hop.output_vault,
        "observation_state" => hop.observation_state,
        "input_token_account" => first.input_token_account,
        "middle_token_account" => first.output_token_account,
        "output_token_account" => last.output_token_account,
        "input_token_program" => first.input_token_program,
        "middle_token_program" => first.output_token_program,
        "output_token_program" => last.output_token_program,
        "input_mint" => first.input_mint,
        "middle_mint" => first.output_mint,
        "output_mint" => last.output_mint,
        other => panic!("account {other}"),
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

/// The fields of an event, numbered from 1, and its bytes, of which every one of a field is the field's number: a decoder
/// that mixes fields up is found out.
fn event(idl: &Value, wanted: &str) -> (Vec<u8>, Vec<String>) {
    let mut events = list(idl, "events").iter();
    let event = events.find(|event| name(event) == wanted);
    let mut data = discriminator(event.expect("the IDL has the event"));
    let mut types = list(idl, "types").iter();
    let described = types.find(|described| name(described) == wanted);
    let fields = list(&described.expect("the event's type")["type"], "fields");
    for (number, field) in (1_u8..).zip(fields) {
        let length = match field["type"].as_str() {
            Some("pubkey") => 32,
            Some("u64") => 8,
            other => panic!("type {other:?}"),
        };
        data.extend(vec![number; length]);
    }
    (
        data,
        fields.iter().map(|field| name(field).to_owned()).collect(),
    )
}

#[test]
fn the_events_are_decoded_as_the_idl_says() {
    let idl = idl();
    assert_eq!(list(&idl, "events").len(), 2);
    let number = |fields: &[String], wanted: &str| {
        let mut numbered = (1_u8..).zip(fields);
        let found = numbered.find(|(_, field)| *field == wanted);
        found.expect("the IDL has the field").0
    };

    let (data, fields) = event(&idl, "Swapped");
    let address = |name| Pubkey::from([number(&fields, name); 32]);
    let amount = |name| u64::from_le_bytes([number(&fields, name); 8]);
    assert!(data.starts_with(&SWAPPED_DISCRIMINATOR));
    assert_eq!(data.len(), SWAPPED_LEN);
    let expected = Swapped {
        user: address("user"),
        pool: address("pool"),
        spent: amount("spent"),
        received: amount("received"),
    };
    assert_eq!(Swapped::decode(&data), Some(expected));

    let (data, fields) = event(&idl, "GuardedSwap");
    let address = |name| Pubkey::from([number(&fields, name); 32]);
    let amount = |name| u64::from_le_bytes([number(&fields, name); 8]);
    assert!(data.starts_with(&GUARDED_SWAP_DISCRIMINATOR));
    assert_eq!(data.len(), GUARDED_SWAP_LEN);
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

/// Integrators look a code up there, so that one without a row is one without a remedy.
#[test]
fn the_guide_has_a_row_for_each_error_and_for_nothing_else() {
    let rows: Vec<(&str, &str)> = GUIDE
        .lines()
        .skip_while(|line| *line != "| code | error | what to do |")
        .skip(2)
        .take_while(|line| line.starts_with("| "))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [code, error, remedy] = cells[..] else {
                panic!("not three cells: {line}");
            };
            assert!(!remedy.is_empty(), "{line}");
            (code, error)
        })
        .collect();
    let expected: Vec<(String, String)> = GuardError::ALL
        .iter()
        .map(|error| (error.code().to_string(), format!("{error:?}")))
        .collect();
    let expected: Vec<(&str, &str)> = expected
        .iter()
        .map(|(code, error)| (code.as_str(), error.as_str()))
        .collect();
    assert_eq!(rows, expected);
}

//! Swaps of every form, of which an older framework's client builds the instructions and reads the events.
//!
//! That client is tested in a workspace of its own (`tests/anchor-client`), which executes nothing: it would compile the
//! chain in memory once more. What its instructions must be, and which events they cause, stands in a file, which is executed
//! here.

use std::{env, fs};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sluice_testkit::{
    names::address,
    pool::PoolSpec,
    route::{Route, Trader},
    svm::Svm,
};
use solana_instruction::Instruction;
use swap_guard_interface::{Swapped, TwoHopAccounts};

use super::{
    forms::{ASKED, Form, OFFERED, START},
    interface::account_names,
};

/// Where the client's tests read it, from the folder of this package, in which its tests run.
const FILE: &str = "../anchor-client/tests/client/swaps.json";

/// Set to write the file anew.
const WRITE: &str = "SLUICE_WRITE_ANCHOR_SWAPS";

/// Never reached, and of other bytes than an amount.
const EXPIRY_SLOT: u64 = u64::MAX;

/// The name of a form's instruction in the IDL.
fn name(form: Form) -> &'static str {
    match form {
        Form::Swap => "swap",
        Form::ExactOut => "swap_exact_out",
        Form::TwoHops => "swap_two_hops",
        Form::SwapTo => "swap_to",
        Form::ExactOutTo => "swap_exact_out_to",
        Form::TwoHopsTo => "swap_two_hops_to",
    }
}

/// The accounts of a form, of which the output is the receiver's where there is one.
fn paying(form: Form, own: &TwoHopAccounts, theirs: &TwoHopAccounts) -> TwoHopAccounts {
    let mut accounts = own.clone();
    match (form.has_receiver(), form.is_two_hops()) {
        (false, _) => {}
        (true, false) => {
            accounts.first.output_token_account = theirs.first.output_token_account;
        }
        (true, true) => {
            accounts.second.output_token_account = theirs.second.output_token_account;
        }
    }
    accounts
}

/// The guard's only event of a swap that it accepts. It says what the balances say.
fn event(svm: &mut Svm, trader: &Trader, form: Form, instruction: &Instruction) -> Vec<u8> {
    let output = instruction.accounts[form.output()].pubkey;
    let own = [trader.accounts.first.input_token_account, output];
    let before = own.map(|account| svm.balance(account));
    let executed = svm
        .send(std::slice::from_ref(instruction), &[&trader.keypair])
        .expect("the guard accepts");
    let after = own.map(|account| svm.balance(account));
    // The exchange logs one of its own.
    let events = executed.events.into_iter();
    let mut events = events.filter(|event| Swapped::decode(event).is_some());
    let event = events.next().expect("the guard logs its event");
    assert_eq!(events.next(), None, "two events of one swap");
    let said = Swapped {
        user: trader.accounts.first.payer,
        pool: instruction.accounts[form.last_pool()].pubkey,
        spent: before[0] - after[0],
        received: after[1] - before[1],
    };
    assert_eq!(Swapped::decode(&event), Some(said), "{form:?}");
    event
}

/// A swap as it is written, its accounts by the names that the IDL gives them.
fn written(form: Form, instruction: &Instruction, event: &[u8]) -> Value {
    let names = account_names(name(form));
    assert_eq!(names.len(), instruction.accounts.len(), "{form:?}");
    let accounts = names.into_iter().zip(&instruction.accounts);
    let accounts = accounts.map(|(name, meta)| {
        json!({
            "name": name,
            "pubkey": meta.pubkey.to_string(),
            "isSigner": meta.is_signer,
            "isWritable": meta.is_writable,
        })
    });
    let said = Swapped::decode(event).expect("an event");
    json!({
        "name": name(form),
        "accounts": accounts.collect::<Vec<_>>(),
        "data": STANDARD.encode(&instruction.data),
        "event": STANDARD.encode(event),
        "user": said.user.to_string(),
        "pool": said.pool.to_string(),
        "spent": said.spent,
        "received": said.received,
    })
}

/// All forms as the interface builds them, executed one after the other on one chain.
fn document() -> Value {
    let mut svm = Svm::new();
    let plain = PoolSpec::plain();
    let route = Route::open(&mut svm, "route", &plain, &plain);
    let trader = route.fund(&mut svm, "user", [START; 3]);
    let receiver = address("receiver");
    let theirs = route.accounts(&mut svm, "receiver", receiver, [START; 3]);
    let swaps = Form::ALL.map(|form| {
        let accounts = paying(form, &trader.accounts, &theirs);
        let instruction = form.build(&accounts, [OFFERED, ASKED, EXPIRY_SLOT], &receiver);
        let event = event(&mut svm, &trader, form, &instruction);
        written(form, &instruction, &event)
    });
    json!({
        "offered": OFFERED,
        "asked": ASKED,
        "expirySlot": EXPIRY_SLOT,
        "receiver": receiver.to_string(),
        "swaps": swaps,
    })
}

#[test]
fn the_guard_executes_what_an_anchor_1_client_is_held_to() {
    let document = document();
    if env::var_os(WRITE).is_some() {
        let text = serde_json::to_string_pretty(&document).expect("a value is text");
        fs::write(FILE, text + "\n").expect("the client's tests are there");
    }
    let present = fs::read_to_string(FILE).expect("the client's tests are there");
    let present: Value = serde_json::from_str(&present).expect("the file is JSON");
    assert!(
        present == document,
        "{FILE} is out of date: run this test with {WRITE}=1"
    );
}

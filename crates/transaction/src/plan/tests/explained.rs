//! Transactions that the TypeScript client explains in its own tests: one of every form, written by this crate.

use std::fmt::Write;

use base64::{Engine, prelude::BASE64_STANDARD};
use solana_message::AddressLookupTableAccount;

use super::{
    forms::{exact_out, two_hops},
    *,
};
use crate::{
    associated::Associated,
    explanation::{Explanation, LookedUp},
    lookup_table::fixed_addresses,
    platform_fee::{PlatformFee, PlatformRate},
};

/// Where the client's tests read them, from the folder of this package, in which its tests run: a compiled test may have come
/// from another checkout.
const FILE: &str = "../../clients/typescript/tests/transactions.json";

/// Set to write the file anew.
const WRITE: &str = "SLUICE_WRITE_TRANSACTIONS";

const RECEIVER: u8 = 20;
const FEE_PAYER: u8 = 21;
const PLATFORM: u8 = 22;
const NONCE: u8 = 23;
const PLATFORM_RATE: u16 = 50;
const TABLE: u8 = 40;

/// Every way, by name.
fn ways() -> [(&'static str, TransactionPlan); 8] {
    let sol = ids::WRAPPED_SOL;
    [
        ("SOL for a token", plan(sol, key(9))),
        ("a token for SOL", plan(key(8), sol)),
        ("a token for another", plan(key(8), key(9))),
        ("SOL for exactly a token", exact_out(plan(sol, key(9)))),
        ("a token for exactly SOL", exact_out(plan(key(8), sol))),
        ("SOL over a token", two_hops(sol, key(7), key(9))),
        ("a token over SOL", two_hops(key(8), sol, key(9))),
        (
            "a token over another for SOL",
            two_hops(key(8), key(7), sol),
        ),
    ]
}

/// What is changed of a way, by bits of its number.
fn varied(mut plan: TransactionPlan, variant: u8) -> TransactionPlan {
    let bit = |n: u8| variant >> n & 1 == 1;
    let (input, output) = (plan.route.first().input_mint, plan.route.last().output_mint);
    plan.terms.amount_in = u64::MAX / 3;
    plan.terms.minimum_out = (1 << 53) + u64::from(variant) + 1;
    if bit(0) || input != ids::WRAPPED_SOL {
        plan.input.account = held(input, 400);
    }
    if bit(0) {
        plan.output.account = held(output, 7);
    }
    if bit(1) {
        plan.receiver = Some(key(RECEIVER));
    }
    if bit(2) {
        plan.fee_payer = key(FEE_PAYER);
    }
    if variant % 3 == 1 {
        plan.terms.expiry_slot = Some(1_000);
        plan.version = TransactionVersion::Legacy;
    }
    if variant % 3 == 2 {
        plan.lookup_table = Some(Arc::new(LookupTable {
            account: AddressLookupTableAccount {
                key: key(TABLE),
                addresses: fixed_addresses(&ExchangeIds::MAINNET).to_vec(),
            },
            authority: None,
        }));
    }
    if variant == 4 || variant == 5 {
        let rate = PlatformRate::new(PLATFORM_RATE).expect("a rate");
        let paid = plan.terms.amount_in;
        plan.terms.amount_in = rate.rest(paid);
        let wallet = key(PLATFORM);
        let associated = Associated::of(&wallet, &input, &ids::SPL_TOKEN);
        plan.platform_fee = Some(PlatformFee {
            amount: rate.of(paid),
            wallet,
            account: associated.address,
            bump: associated.bump,
            is_there: variant == 5,
            decimals: 6,
        });
    }
    if variant == 6 {
        plan.version = TransactionVersion::V1;
    }
    if variant == 3 {
        plan.nonce = Some(DurableNonce {
            account: key(NONCE),
            authority: key(1),
            value: Hash::new_from_array([8; 32]),
        });
    }
    plan.unwraps_lamports = variant != 7;
    plan.wrap_and_unwrap_sol = variant != 3;
    plan.named_destination = variant == 3 && plan.output.account.is_some();
    plan
}

/// The body that the plan would have been asked for with.
fn request(plan: &TransactionPlan) -> String {
    let (first, last) = (plan.route.first(), plan.route.last());
    let terms = plan.terms;
    let pool = match plan.route {
        Route::TwoHops(_) => format!("{},{}", first.pool_state, last.pool_state),
        _ => first.pool_state.to_string(),
    };
    let mut text = format!(
        r#"{{"userPublicKey":"{}","priorityFeeLamports":{},"wrapAndUnwrapSol":{}"#,
        first.payer, plan.priority_fee, plan.wrap_and_unwrap_sol
    );
    let mut member = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            write!(text, r#","{name}":"{value}""#).expect("a text takes everything");
        }
    };
    let is_exact_out = plan.route.is_exact_out();
    member("swapMode", is_exact_out.then(|| "ExactOut".to_owned()));
    member("receiver", plan.receiver.map(|key| key.to_string()));
    let other_payer = Some(plan.fee_payer).filter(|payer| *payer != first.payer);
    member("feePayer", other_payer.map(|key| key.to_string()));
    member("expirySlot", terms.expiry_slot.map(|slot| slot.to_string()));
    let nonce = plan.nonce.map(|nonce| nonce.account.to_string());
    member("nonceAccount", nonce);
    let platform = plan.platform_fee;
    let rate = platform.map(|_| PLATFORM_RATE.to_string());
    member("platformFeeBps", rate);
    let fee_wallet = platform.map(|fee| fee.wallet.to_string());
    member("feeWallet", fee_wallet);
    let paid = terms.amount_in + platform.map_or(0, |fee| fee.amount);
    let named = plan.named_destination;
    let destination = named.then(|| last.output_token_account.to_string());
    member("destinationTokenAccount", destination);
    write!(
        text,
        r#","quote":{{"amountIn":{},"minimumOut":{},"outAmount":{},"inputMint":"{}","outputMint":"{}","pool":"{pool}"}}}}"#,
        paid, terms.minimum_out, terms.minimum_out, first.input_mint, last.output_mint
    )
    .expect("a text takes everything");
    text
}

fn document() -> String {
    let table = fixed_addresses(&ExchangeIds::MAINNET).map(|address| format!("\"{address}\""));
    let mut text = format!(
        "{{\"lookupTables\":{{\"{}\":[{}]}},\n\"transactions\":[\n",
        key(TABLE),
        table.join(",")
    );
    let mut lines = Vec::new();
    for (way, base) in ways() {
        for variant in 0..8 {
            let plan = varied(base.clone(), variant);
            let built = unsigned_of(&plan);
            let names: Vec<_> = built
                .instructions
                .iter()
                .map(|planned| format!("\"{}\"", planned.name))
                .collect();
            lines.push(format!(
                r#"{{"name":"{way}, variant {variant}","request":{},"wrapped":"{}","platformFee":"{}","priorityFee":"{}","names":[{}],"transaction":"{}"}}"#,
                request(&plan),
                built.costs.wrapped,
                plan.platform_fee.map_or(0, |fee| fee.amount),
                built.costs.priority_fee,
                names.join(","),
                BASE64_STANDARD.encode(&built.bytes)
            ));
        }
    }
    text.push_str(&lines.join(",\n"));
    text.push_str("\n]}\n");
    text
}

#[test]
fn the_clients_transactions_are_what_is_built() {
    let text = document();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(FILE, &text).expect("the client's tests are there");
    }
    let present = std::fs::read_to_string(FILE).expect("the client's tests are there");
    assert!(
        present == text,
        "{FILE} is out of date: run this test with {WRITE}=1"
    );
}

#[test]
fn every_instruction_that_is_built_is_explained_with_the_roles_and_costs_of_the_plan() {
    for (way, base) in ways() {
        for variant in 0..8 {
            let plan = varied(base.clone(), variant);
            let built = unsigned_of(&plan);
            let table = plan.lookup_table.as_deref();
            let read = Explanation::read(&built.bytes, LookedUp::In(table), &ids::PROGRAM_ID)
                .expect("a transaction");
            let name = format!("{way}, variant {variant}");
            assert!(read.is_known() && read.calls_guard(), "{name}");
            assert_eq!(read.has_nonce, plan.nonce.is_some(), "{name}");
            assert_eq!(read.costs.base_fee, built.costs.base_fee, "{name}");
            assert_eq!(read.costs.priority_fee, built.costs.priority_fee, "{name}");
            assert_eq!(read.costs.unit_limit, Some(built.unit_limit), "{name}");
            assert_eq!(read.steps.len(), built.instructions.len(), "{name}");
            for (step, planned) in read.steps.iter().zip(&built.instructions) {
                let instruction = &planned.instruction;
                assert_eq!(step.program, instruction.program_id, "{name}");
                assert_eq!(step.caution, None, "{name}: {}", step.says);
                assert_eq!(step.accounts.len(), instruction.accounts.len(), "{name}");
                for (account, meta) in step.accounts.iter().zip(&instruction.accounts) {
                    assert_eq!(account.address, Some(meta.pubkey), "{name}");
                    assert!(account.role.is_some(), "{name}: {}", step.says);
                    // A transaction merges what its instructions ask of an account.
                    assert!(account.is_signer >= meta.is_signer, "{name}");
                    assert!(account.is_writable >= meta.is_writable, "{name}");
                }
            }
        }
    }
}

#[test]
fn what_stands_in_a_table_that_is_not_at_hand_is_said_to_be_unknown() {
    let plan = varied(ways()[2].1.clone(), 2);
    let built = unsigned_of(&plan);
    let table = plan.lookup_table.as_deref().expect("a table");
    let with = Explanation::read(&built.bytes, LookedUp::In(Some(table)), &ids::PROGRAM_ID)
        .expect("a transaction");
    let without = Explanation::read(&built.bytes, LookedUp::In(None), &ids::PROGRAM_ID)
        .expect("a transaction");
    let unknown = |read: &Explanation| {
        let accounts = read.steps.iter().flat_map(|step| &step.accounts);
        accounts.filter(|account| account.address.is_none()).count()
    };
    assert_eq!(unknown(&with), 0);
    assert!(unknown(&without) > 0);
    // As the chain resolves them: those that may be written first, of which swaps have none in a table.
    let message = transaction_of(&built.bytes).message;
    let lookups = message.address_table_lookups().expect("version 0");
    let resolved: Vec<_> = lookups[0]
        .readonly_indexes
        .iter()
        .map(|&index| table.addresses()[usize::from(index)])
        .collect();
    assert!(lookups[0].writable_indexes.is_empty());
    let resolved = Explanation::read(
        &built.bytes,
        LookedUp::Resolved(&resolved),
        &ids::PROGRAM_ID,
    );
    assert_eq!(resolved, Ok(with));
}

fn transaction_of(bytes: &[u8]) -> VersionedTransaction {
    wincode::deserialize_exact(bytes).expect("a transaction")
}

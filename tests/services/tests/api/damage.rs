//! Damaged bodies: answered with a transaction that spends what it states, or refused.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use solana_pubkey::Pubkey;
use solana_system_interface::program::ID as SYSTEM_PROGRAM;
use solana_transaction::versioned::VersionedTransaction;
use swap_guard_interface::SWAP_DISCRIMINATOR;

use crate::client::{Answer, Client};

/// Damaged bodies that are sent.
const BODIES: usize = 3_000;

/// Numbers of the system program's instructions.
const TRANSFER: u32 = 2;
const CREATE_ACCOUNT_WITH_SEED: u32 = 3;

#[tokio::test]
async fn damaged_bodies_get_what_they_state_or_a_refusal() {
    let client = Client::start().await;
    let quote = client.quote().await;
    let whole = json!({
        "quote": quote, "userPublicKey": crate::client::wallet().to_string(), "wrapAndUnwrapSol": true,
        "priorityFeeLamports": 5_000, "asLegacyTransaction": false, "expirySlot": u64::MAX,
        "refresh": false, "checkBalance": false,
    });
    let mut random = StdRng::seed_from_u64(1);
    let (mut built, mut refused) = (0, 0);
    for number in 0..BODIES {
        let body = damaged(&mut random, &whole, number);
        for path in ["/v1/swap/transaction", "/v1/swap/instruction"] {
            let answer = client
                .post_raw(path, "application/json", body.clone())
                .await;
            let text = String::from_utf8_lossy(&body);
            match answer.status.as_u16() {
                200 => built += 1,
                400..500 => refused += 1,
                _ => panic!("{}: {text}", answer.body),
            }
            if answer.status == 200 && path.ends_with("transaction") {
                assert_spends_what_it_states(&answer, &text);
            }
        }
    }
    assert!(
        built > BODIES / 10 && refused > BODIES / 10,
        "{built} {refused}"
    );
}

/// Changes one or two values of the body, or, in every third, a few of its bytes.
fn damaged(random: &mut StdRng, whole: &Value, number: usize) -> Vec<u8> {
    let mut body = whole.clone();
    for _ in 0..random.random_range(0..3) {
        let inside = random.random_bool(0.5);
        let object = if inside {
            &mut body["quote"]
        } else {
            &mut body
        };
        let Some(fields) = object.as_object_mut() else {
            continue;
        };
        let names: Vec<String> = fields.keys().cloned().collect();
        let Some(name) = names.choose(random) else {
            continue;
        };
        let value = strange(random);
        if random.random_bool(0.2) {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value);
        }
    }
    let mut bytes = body.to_string().into_bytes();
    if number.is_multiple_of(3) {
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
    }
    bytes
}

fn strange(random: &mut StdRng) -> Value {
    let number: u64 = random.random::<u64>() >> random.random_range(0..64);
    match random.random_range(0..10) {
        0 => json!(number),
        1 => json!(number.to_string()),
        2 => json!(u64::MAX),
        3 => json!(-1),
        4 => json!(0.5),
        5 => json!(Pubkey::from(random.random::<[u8; 32]>()).to_string()),
        6 => json!(random.random_bool(0.5)),
        7 => json!([]),
        8 => json!("\u{0}\u{1f4a9}"),
        _ => Value::Null,
    }
}

/// The lamports that leave the wallet in the transaction's own instructions, against the stated costs.
fn assert_spends_what_it_states(answer: &Answer, body: &str) {
    let bytes = BASE64
        .decode(answer.body["transaction"].as_str().expect("a transaction"))
        .expect("base64");
    let transaction: VersionedTransaction =
        wincode::deserialize_exact(&bytes).expect("a transaction");
    let message = &transaction.message;
    let keys = message.static_account_keys();
    let (mut transferred, mut seeded) = (0u64, 0u64);
    let mut swaps = 0;
    for instruction in message.instructions() {
        let program = keys[usize::from(instruction.program_id_index)];
        let data = &instruction.data;
        let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("8 bytes"));
        if program == SYSTEM_PROGRAM {
            match u32::from_le_bytes(data[..4].try_into().expect("4 bytes")) {
                TRANSFER => transferred += word(4),
                // Base, length of the seed, and the seed come first.
                CREATE_ACCOUNT_WITH_SEED => seeded += word(4 + 32 + 8 + usize::from(data[36])),
                other => panic!("instruction {other} of the system program: {body}"),
            }
        } else if program == swap_guard_interface::PROGRAM_ID {
            assert_eq!(data[..8], SWAP_DISCRIMINATOR);
            assert_eq!(json!(word(8)), answer.body["quote"]["amountIn"], "{body}");
            assert_eq!(
                json!(word(16)),
                answer.body["quote"]["minimumOut"],
                "{body}"
            );
            swaps += 1;
        }
    }
    assert_eq!(swaps, 1, "{body}");
    let costs = &answer.body["costs"];
    assert_eq!(json!(transferred), costs["wrappedLamports"], "{body}");
    let rents = costs["rent"].as_array().expect("rents");
    let stated = rents.iter().filter_map(|rent| rent["lamports"].as_u64());
    assert!(seeded <= stated.sum(), "{body}");
    let limit = u128::from(answer.body["computeUnitLimit"].as_u64().expect("a limit"));
    let price = answer.body["computeUnitPriceMicroLamports"].as_u64();
    let charged = (u128::from(price.expect("a price")) * limit).div_ceil(1_000_000);
    let ceiling = serde_json::from_str::<Value>(body)
        .ok()
        .and_then(|body| amount(&body["priorityFeeLamports"]))
        .unwrap_or(0);
    assert!(charged <= u128::from(ceiling), "{charged}: {body}");
    assert_eq!(
        json!(u64::try_from(charged).expect("it fits")),
        costs["priorityFeeLamports"]
    );
}

fn amount(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_str().and_then(|digits| digits.parse().ok()))
}

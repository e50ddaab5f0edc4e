//! Check of a transaction against its body: what was built is equal, what was tampered with is not.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use futures::StreamExt;
use rand::{Rng, RngCore, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use sluice_transaction::Associated;
use solana_hash::Hash;
use solana_message::VersionedMessage;
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use crate::client::{AMOUNT, Answer, Client, wallet};

/// Tampered transactions of each body.
const TAMPERED: usize = 250;

/// Requests at the same time.
const AT_ONCE: usize = 20;

/// Length of a signature.
const SIGNATURE: usize = 64;

impl Client {
    async fn check(&self, body: &Value, transaction: &[u8]) -> Answer {
        let transaction = BASE64.encode(transaction);
        let body = json!({ "transaction": transaction, "request": body });
        self.post("/v1/swap/check", &body).await
    }

    /// The transaction that is built for the body.
    async fn built(&self, body: &Value) -> Vec<u8> {
        let answer = self.transaction(body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let text = answer.body["transaction"].as_str().expect("a transaction");
        BASE64.decode(text).expect("base64")
    }

    /// Bodies of different forms.
    async fn bodies(&self) -> [Value; 4] {
        let plain = self.body(&self.quote().await);
        let with = |more: Value| {
            let mut body = plain.clone();
            let fields = body.as_object_mut().expect("an object");
            fields.extend(more.as_object().expect("an object").clone());
            body
        };
        [
            plain.clone(),
            with(json!({ "asLegacyTransaction": true, "priorityFeeLamports": 5_000 })),
            with(json!({ "expirySlot": 1_000_000, "wrapSol": "always" })),
            with(
                json!({ "receiver": Pubkey::from([9; 32]).to_string(), "wrapAndUnwrapSol": false }),
            ),
        ]
    }
}

fn parse(bytes: &[u8]) -> VersionedTransaction {
    wincode::deserialize_exact(bytes).expect("a transaction")
}

fn write(transaction: &VersionedTransaction) -> Vec<u8> {
    wincode::serialize(transaction).expect("a transaction has bytes")
}

#[tokio::test]
async fn what_was_built_is_equal_with_any_blockhash_and_any_signatures() {
    let client = Client::start().await;
    client.enrich(1_000_000_000);
    for body in client.bodies().await {
        let built = client.built(&body).await;
        let mut signed = parse(&built);
        signed.signatures[0] = Signature::from([7; SIGNATURE]);
        signed
            .message
            .set_recent_blockhash(Hash::new_from_array([5; 32]));
        for bytes in [built, write(&signed)] {
            let answer = client.check(&body, &bytes).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            assert_eq!(answer.body, json!({ "equal": true, "difference": null }));
        }
    }
}

#[tokio::test]
async fn an_account_of_the_transaction_alone_is_built_again_when_the_blockhash_has_gone() {
    let client = Client::start().await;
    let pool = &client.harness.sol_pool;
    let mints = pool.state.mints;
    for mint in [mints.token_0, mints.token_1] {
        let account = Associated::of(&wallet(), &mint, &cpmm::ids::SPL_TOKEN).address;
        client.give(account, wallet(), mint, AMOUNT, false);
    }
    let path = format!(
        "/v1/quote?inputMint={}&outputMint={}&amount={AMOUNT}",
        mints.token_1, mints.token_0
    );
    let quoted = client.get(&path).await.body;
    let body = client.body(&quoted["quote"]);
    let answer = client.transaction(&body).await.body;
    let instructions = answer["instructions"].as_array().expect("a list").iter();
    let mut names = instructions.map(|instruction| &instruction["name"]);
    assert!(
        names.any(|name| name == "createTemporaryAccount"),
        "{answer}"
    );
    while client.transaction(&body).await.body["blockhash"] == answer["blockhash"] {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let transaction = BASE64.decode(answer["transaction"].as_str().expect("a transaction"));
    let checked = client.check(&body, &transaction.expect("base64")).await;
    assert_eq!(checked.body, json!({ "equal": true, "difference": null }));
}

#[tokio::test]
async fn the_first_difference_is_named() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    let mut other = body.clone();
    let minimum = &mut other["quote"]["minimumOut"];
    *minimum = json!(minimum.as_u64().expect("a minimum") - 1);
    let answer = client.check(&body, &client.built(&other).await).await;
    assert_eq!(answer.body["equal"], json!(false));
    let at = answer.body["difference"]["at"].as_str().expect("a place");
    assert!(
        at.starts_with("instructions[") && at.ends_with("].data"),
        "{at}"
    );
    let mut other = body.clone();
    other["userPublicKey"] = json!(Pubkey::from([3; 32]).to_string());
    let answer = client.check(&body, &client.built(&other).await).await;
    assert_eq!(answer.body["difference"]["at"], json!("accounts[0]"));
    assert_eq!(
        answer.body["difference"]["built"],
        json!(wallet().to_string())
    );
}

#[tokio::test]
async fn what_cannot_be_compared_is_refused_by_name() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    let mut longer = client.built(&body).await;
    longer.push(0);
    for bytes in [&b""[..], b"nothing", &longer] {
        let answer = client.check(&body, bytes).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, "invalid_field")
        );
        assert_eq!(answer.body["field"], json!("transaction"));
    }
    for (body, code) in [
        (json!({ "request": body }), "missing_field"),
        (json!({ "transaction": "" }), "missing_field"),
        (
            json!({ "transaction": "?", "request": body }),
            "invalid_field",
        ),
    ] {
        let answer = client.post("/v1/swap/check", &body).await;
        assert_eq!(answer.code(), code, "{body}");
    }
}

#[tokio::test]
async fn no_tampered_transaction_of_a_thousand_is_equal() {
    // Over a thousand requests a busy machine would be late for the usual deadline, which is no matter here.
    let client = Client::start_with(Duration::from_secs(30)).await;
    client.enrich(1_000_000_000);
    let mut random = StdRng::seed_from_u64(15);
    let mut compared = 0;
    for body in client.bodies().await {
        let built = client.built(&body).await;
        let all: Vec<_> = (0..TAMPERED)
            .map(|number| tampered(&built, number, &mut random))
            .collect();
        let checks = all.iter().map(|tampered| client.check(&body, tampered));
        let answers = futures::stream::iter(checks).buffered(AT_ONCE);
        for (answer, tampered) in answers.collect::<Vec<_>>().await.iter().zip(&all) {
            match answer.status.as_u16() {
                200 => {
                    assert_eq!(answer.body["equal"], json!(false), "{tampered:02x?}");
                    assert!(answer.body["difference"]["at"].is_string());
                    compared += 1;
                }
                400 => assert_eq!(answer.body["field"], json!("transaction")),
                _ => panic!("{}: {}", answer.status, answer.body),
            }
        }
    }
    assert!(compared > 2 * TAMPERED, "only {compared} were transactions");
}

/// Another transaction than `built`.
fn tampered(built: &[u8], number: usize, random: &mut StdRng) -> Vec<u8> {
    loop {
        let tampered = if number.is_multiple_of(2) {
            with_other_bytes(built, random)
        } else {
            with_other_parts(built, random)
        };
        let mut parts = [built.to_vec(), tampered.clone()];
        for bytes in &mut parts {
            if let Ok(mut transaction) = wincode::deserialize_exact::<VersionedTransaction>(bytes) {
                transaction.signatures.fill(Signature::default());
                transaction.message.set_recent_blockhash(Hash::default());
                *bytes = write(&transaction);
            }
        }
        // By chance what was changed is what it was.
        if parts[0] != parts[1] {
            return tampered;
        }
    }
}

/// One to three bytes changed, none of a signature.
fn with_other_bytes(built: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = built.to_vec();
    let message = 1 + SIGNATURE * parse(built).signatures.len();
    for _ in 0..random.random_range(1..=3) {
        let at = random.random_range(message..bytes.len());
        bytes[at] ^= 1 << random.random_range(0..8);
    }
    bytes
}

/// An instruction, an account or its data taken away, added, changed or moved.
fn with_other_parts(built: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut transaction = parse(built);
    let (keys, instructions) = match &mut transaction.message {
        VersionedMessage::Legacy(message) => (&mut message.account_keys, &mut message.instructions),
        VersionedMessage::V0(message) => (&mut message.account_keys, &mut message.instructions),
        VersionedMessage::V1(message) => (&mut message.account_keys, &mut message.instructions),
    };
    let one = random.random_range(0..instructions.len());
    match random.random_range(0..7) {
        0 => drop(instructions.remove(one)),
        1 => instructions.push(instructions[one].clone()),
        2 => {
            let other = random.random_range(0..instructions.len());
            instructions.swap(one, other);
        }
        3 => {
            let key = random.random_range(0..keys.len());
            keys[key] = Pubkey::from(random.random::<[u8; 32]>());
        }
        4 => keys.push(*keys.choose(random).expect("a key")),
        5 => random.fill_bytes(&mut instructions[one].data),
        _ => {
            let accounts = &mut instructions[one].accounts;
            accounts.push(random.random_range(0..8));
        }
    }
    write(&transaction)
}

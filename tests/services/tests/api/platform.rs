//! A platform's fee, from the quote to the transaction.

use serde_json::{Value, json};
use sluice_testkit::names::keypair;
use sluice_transaction::Associated;
use solana_pubkey::Pubkey;
use solana_signer::Signer;

use crate::client::{AMOUNT, Client};

/// Half a percent.
const RATE: u64 = 50;

fn platform() -> Pubkey {
    keypair("platform").pubkey()
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no amount"))
}

/// The instruction of this name in an answer's manifest.
fn step<'a>(answer: &'a Value, name: &str) -> Option<&'a Value> {
    let steps = answer["instructions"].as_array().expect("a list");
    steps.iter().find(|step| step["name"] == name)
}

impl Client {
    async fn quoted(&self, input: Pubkey, output: Pubkey, rest: &str) -> Value {
        let path = format!("/v1/quote?inputMint={input}&outputMint={output}{rest}");
        let answer = self.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// The body of a swap of which the platform gets its part.
    fn charged(&self, quote: &Value) -> Value {
        let mut body = self.body(quote);
        body["platformFeeBps"] = json!(RATE);
        body["feeWallet"] = json!(platform().to_string());
        body
    }
}

#[tokio::test]
async fn all_that_the_user_pays_is_the_amount_and_the_rest_of_it_is_swapped() {
    let client = Client::start().await;
    client.enrich(1_000_000_000);
    let mints = client.harness.sol_pool.state.mints;
    let (token, sol) = (mints.token_1, mints.token_0);
    let paid = AMOUNT + 199;
    let fee = paid * RATE / 10_000;
    let asked = format!("&amount={paid}&platformFeeBps={RATE}");
    let answer = client.quoted(token, sol, &asked).await;
    let rest = format!("&amount={}", paid - fee);
    let of_rest = client.quoted(token, sol, &rest).await;
    assert_eq!(answer["quote"]["amountIn"], json!(paid));
    assert_eq!(answer["quote"]["outAmount"], of_rest["quote"]["outAmount"]);
    assert_eq!(answer["context"]["platformFee"], json!(fee));
    assert_eq!(answer["context"]["platformFeeString"], fee.to_string());
    assert_eq!(answer["context"]["platformFeeReceived"], json!(fee));

    let body = client.charged(&answer["quote"]);
    let built = client.transaction(&body).await;
    assert_eq!(built.status, 200, "{}", built.body);
    assert_eq!(built.body["quote"], answer["quote"]);
    assert_eq!(built.body["platformFee"], json!(fee));
    let program = cpmm::ids::SPL_TOKEN;
    let account = Associated::of(&platform(), &token, &program).address;
    let rents = built.body["costs"]["rent"].as_array().expect("a list");
    let owned = |rent: &&Value| rent["account"] == account.to_string();
    let rent = rents.iter().find(owned).expect("it is created");
    assert_eq!(rent["owner"], platform().to_string());
    assert_eq!(rent["comesBack"], json!(false));
    let pay = step(&built.body, "payPlatformFee").expect("it is paid");
    assert_eq!(pay["accounts"][2]["pubkey"], account.to_string());
    // The bare instruction is for the rest too.
    let bare = client.post("/v1/swap/instruction", &body).await;
    let data: Vec<u8> = serde_json::from_value(bare.body["instruction"]["data"].clone())
        .expect("an array of integers");
    assert_eq!(data[8..16], (paid - fee).to_le_bytes());
    // What the user must hold is all of it.
    let mut checked = body.clone();
    checked["checkBalance"] = json!(true);
    let poor = client.transaction(&checked).await;
    assert_eq!(poor.body["needed"], json!(paid), "{}", poor.body);
    // An account that is there is used as it is.
    client.give(account, platform(), token, 5, false);
    let built = client.transaction(&body).await;
    let rents = built.body["costs"]["rent"].as_array().expect("a list");
    assert!(!rents.iter().any(|rent| owned(&rent)));
    client.give(account, platform(), token, 5, true);
    let frozen = client.transaction(&body).await;
    assert_eq!(frozen.code(), "token_account_unusable");
    assert_eq!(frozen.body["field"], "feeWallet");
}

#[tokio::test]
async fn of_an_exact_output_the_rest_of_the_maximum_suffices() {
    let client = Client::start().await;
    let mints = client.harness.sol_pool.state.mints;
    let (token, sol) = (mints.token_1, mints.token_0);
    let asked = format!("&amount={AMOUNT}&swapMode=ExactOut&slippageBps=100");
    let plain = client.quoted(token, sol, &asked).await;
    let charged = format!("{asked}&platformFeeBps={RATE}");
    let answer = client.quoted(token, sol, &charged).await;
    let most = number(&plain["quote"]["amountIn"]);
    let paid = number(&answer["quote"]["amountIn"]);
    assert_eq!(paid, (most * 10_000).div_ceil(10_000 - RATE));
    let fee = number(&answer["context"]["platformFee"]);
    assert_eq!(fee, paid * RATE / 10_000);
    assert!((most..=most + 1).contains(&(paid - fee)));
    assert_eq!(
        answer["context"]["expectedIn"],
        plain["context"]["expectedIn"]
    );
    let mut body = client.charged(&answer["quote"]);
    body["swapMode"] = json!("ExactOut");
    let built = client.transaction(&body).await;
    assert_eq!(built.status, 200, "{}", built.body);
    assert_eq!(built.body["platformFee"], json!(fee));
    // The fee is not there to be spent.
    let expected = number(&answer["context"]["expectedIn"]);
    body["quote"]["amountIn"] = json!(expected);
    let short = client.transaction(&body).await;
    let got = (short.status.as_u16(), short.code());
    assert_eq!(got, (409, "quote_stale"), "{}", short.body);
    body["quote"]["slippageBps"] = json!(100);
    body["refresh"] = json!(true);
    let renewed = client.transaction(&body).await;
    assert_eq!(renewed.body["quote"], answer["quote"], "{}", renewed.body);
}

#[tokio::test]
async fn native_sol_goes_to_a_wallet_that_the_chain_lets_be() {
    let client = Client::start().await;
    let quote = client.quote().await;
    let mut body = client.charged(&quote);
    body["platformFeeBps"] = json!(6 * RATE);
    let stale = client.transaction(&body).await;
    assert_eq!(stale.code(), "quote_stale", "it was made without the fee");
    body["platformFeeBps"] = json!(RATE);
    let mints = client.harness.sol_pool.state.mints;
    let asked = format!("&amount={AMOUNT}&platformFeeBps={RATE}");
    let answer = client.quoted(mints.token_0, mints.token_1, &asked).await;
    body["quote"] = answer["quote"].clone();
    let empty = client.transaction(&body).await;
    let got = (empty.status.as_u16(), empty.code());
    assert_eq!(got, (422, "fee_wallet_unusable"), "{}", empty.body);
    client.harness.node.set(sluice_chain_types::RawAccount {
        pubkey: platform(),
        owner: Pubkey::default(),
        lamports: 1_000_000,
        data: bytes::Bytes::new(),
    });
    let built = client.transaction(&body).await;
    assert_eq!(built.status, 200, "{}", built.body);
    let pay = step(&built.body, "payPlatformFee").expect("it is paid");
    assert_eq!(pay["accounts"][1]["pubkey"], platform().to_string());
    let fee = AMOUNT * RATE / 10_000;
    let costs = &built.body["costs"];
    assert_eq!(costs["wrappedLamports"], json!(AMOUNT - fee));
    // A fee of nothing is none.
    body["platformFeeBps"] = json!(0);
    body["quote"] = quote;
    let built = client.transaction(&body).await;
    assert_eq!(built.body["platformFee"], json!(0), "{}", built.body);
    assert_eq!(step(&built.body, "payPlatformFee"), None);
}

#[tokio::test]
async fn a_rate_without_a_wallet_and_a_wallet_without_a_rate_are_refused() {
    let client = Client::start().await;
    let whole = client.charged(&client.quote().await);
    let user = whole["userPublicKey"].clone();
    let cases = [
        ("feeWallet", Value::Null, "missing_field", "feeWallet"),
        (
            "platformFeeBps",
            Value::Null,
            "missing_field",
            "platformFeeBps",
        ),
        (
            "platformFeeBps",
            json!(10_000),
            "invalid_field",
            "platformFeeBps",
        ),
        ("feeWallet", user, "invalid_field", "feeWallet"),
    ];
    for (field, value, code, named) in cases {
        let mut body = whole.clone();
        body[field] = value;
        let answer = client.transaction(&body).await;
        let got = (answer.status.as_u16(), answer.code());
        assert_eq!(got, (400, code), "{}", answer.body);
        let detail = answer.body["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(named), "{detail}");
    }
}

//! Refusals of the swap endpoints, each by its code.

use cpmm::ids;
use serde_json::{Value, json};
use sluice_testkit::names::{address, keypair};
use sluice_transaction::Associated;
use solana_hash::Hash;
use solana_pubkey::Pubkey;
use solana_signer::Signer;

use crate::client::{AMOUNT, Client, output_account, wallet};

const BOTH: [&str; 2] = ["/v1/swap/transaction", "/v1/swap/instruction"];

#[track_caller]
fn put(body: &Value, pointer: &str, value: Value) -> Value {
    let mut body = body.clone();
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    body.pointer_mut(parent).expect("it exists")[field] = value;
    body
}

#[tokio::test]
async fn bodies_that_cannot_be_executed_are_refused_with_their_code() {
    let client = Client::start().await;
    let quote = client.quote().await;
    let body = client.body(&quote);
    let fee_pool = client.harness.fee_pool.address.to_string();
    let stranger = Pubkey::from([8; 32]).to_string();
    let out_amount = quote["outAmount"].as_u64().expect("an amount");
    let cases = [
        ("/quote/pool", json!(stranger), 404, "unknown_pool"),
        ("/quote/pool", json!(fee_pool), 422, "pool_mint_mismatch"),
        ("/quote/program", json!(stranger), 422, "wrong_program"),
        (
            "/quote/minimumOut",
            json!(0),
            400,
            "minimum_out_out_of_range",
        ),
        (
            "/quote/minimumOut",
            json!(out_amount + 1),
            400,
            "minimum_out_out_of_range",
        ),
        ("/quote/minimumOut", json!(1.5), 400, "invalid_field"),
        ("/quote/amountIn", json!(-1), 400, "invalid_field"),
        ("/quote/amountIn", json!(0), 400, "invalid_field"),
        ("/quote/inputMint", json!("O0Il"), 400, "invalid_field"),
        ("/quote/more", json!(1), 400, "unknown_field"),
        ("/quote", Value::Null, 400, "missing_field"),
        ("/userPublicKey", Value::Null, 400, "missing_field"),
        ("/userPublicKey", json!("me"), 400, "invalid_field"),
        ("/priorityFee", json!(1), 400, "unknown_field"),
        ("/priorityFeeLamports", json!("1e3"), 400, "invalid_field"),
        ("/expirySlot", json!(true), 400, "invalid_field"),
        (
            "/destinationTokenAccount",
            json!("here"),
            400,
            "invalid_field",
        ),
    ];
    for path in BOTH {
        assert_eq!(client.post(path, &body).await.status, 200);
        for (pointer, value, status, code) in &cases {
            let answer = client.post(path, &put(&body, pointer, value.clone())).await;
            let got = (answer.status.as_u16(), answer.code());
            assert_eq!(got, (*status, *code), "{path} {pointer}: {}", answer.body);
        }
    }
}

/// A program signs for its address when it calls, so that only a whole transaction is out of question.
#[tokio::test]
async fn a_programs_address_swaps_by_the_instruction_alone() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    let vault = ids::AUTHORITY;
    let asked = put(&body, "/userPublicKey", json!(vault.to_string()));
    let refused = client.transaction(&asked).await;
    let got = (refused.status.as_u16(), refused.code());
    assert_eq!(got, (400, "wallet_off_curve"), "{}", refused.body);
    let answer = client.post(BOTH[1], &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let output = answer.body["tokenAccounts"]["output"].clone();
    let mint = client.harness.sol_pool.state.mints.token_1;
    let account = Associated::of(&vault, &mint, &ids::SPL_TOKEN).address;
    assert_eq!(output["address"], account.to_string());
    assert_eq!(answer.body["keys"][0]["pubkey"], vault.to_string());
}

#[tokio::test]
async fn the_instruction_comes_with_all_that_makes_it_a_transaction() {
    let client = Client::start().await;
    let mut body = client.body(&client.quote().await);
    body["priorityFeeLamports"] = json!(5_000);
    let answer = client.post(BOTH[1], &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = answer.body;
    let names = |list: &str| -> Vec<String> {
        let list = answer[list].as_array().expect("a list").iter();
        let names = list.map(|one| one["name"].as_str().expect("a name").to_owned());
        names.collect()
    };
    let budget = ["setComputeUnitPrice", "setComputeUnitLimit"];
    assert_eq!(names("computeBudgetInstructions"), budget);
    let set_up = [
        "createTokenAccount",
        "createTokenAccount",
        "wrapSol",
        "syncWrappedSol",
    ];
    assert_eq!(names("setupInstructions"), set_up);
    assert_eq!(names("cleanupInstructions"), ["unwrapSol"]);
    let limit = answer["transactionComputeUnitLimit"].as_u64();
    let data: Vec<u8> =
        serde_json::from_value(answer["computeBudgetInstructions"][1]["data"].clone())
            .expect("an array of integers");
    let limit = u32::try_from(limit.expect("a limit")).expect("it fits");
    assert_eq!(data[1..], limit.to_le_bytes());
    assert!(answer["costs"]["priorityFeeLamports"].as_u64() <= Some(5_000));
    let blockhash: Hash = answer["blockhash"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("a blockhash");
    // The node makes its blockhashes so that the height can be read from them.
    let slot = u64::from_le_bytes(blockhash.to_bytes()[..8].try_into().expect("8 bytes"));
    assert_eq!(answer["lastValidBlockHeight"], json!(slot + 150));
    // Wrapped SOL that is there is filled up and never closed.
    let sol = client.harness.sol_pool.state.mints.token_0;
    let account = Associated::of(&wallet(), &sol, &ids::SPL_TOKEN).address;
    client.give(account, wallet(), sol, 1, false);
    let held = client.post(BOTH[1], &body).await.body;
    assert_eq!(held["instruction"], answer["instruction"]);
    assert_eq!(held["cleanupInstructions"], json!([]));
    assert_eq!(held["costs"]["wrappedLamports"], json!(AMOUNT - 1));
}

#[tokio::test]
async fn the_api_describes_itself() {
    let client = Client::start().await;
    let answer = client.get("/openapi.json").await;
    assert_eq!(answer.status, 200);
    for path in ["/v1/quote", BOTH[0], BOTH[1], "/api/webhooks"] {
        assert!(answer.body["paths"][path].is_object(), "{path}");
    }
}

#[tokio::test]
async fn bodies_that_are_none_are_refused() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await).to_string();
    let long = format!("{body}{}", " ".repeat(16 * 1024));
    for path in BOTH {
        let code = async |kind: &str, text: &str| {
            let answer = client.post_raw(path, kind, text.to_owned()).await;
            (answer.status.as_u16(), answer.code().to_owned())
        };
        const JSON: &str = "application/json";
        assert_eq!(code("text/plain", &body).await.1, "unsupported_media_type");
        assert_eq!(code(JSON, &long).await, (413, "body_too_large".to_owned()));
        assert_eq!(code(JSON, "{").await, (400, "invalid_body".to_owned()));
        assert_eq!(code(JSON, "[]").await.0, 400);
        assert_eq!(code(JSON, "").await.0, 400);
        let twice = format!("{body}{body}");
        assert_eq!(code(JSON, &twice).await.1, "invalid_body");
        let get = client.get(path).await;
        assert_eq!(
            (get.status.as_u16(), get.code()),
            (405, "method_not_allowed")
        );
    }
}

#[tokio::test]
async fn a_quote_that_is_no_longer_true_is_refused_with_a_fresh_one_or_renewed() {
    let client = Client::start().await;
    let quote = client.quote().await;
    let body = client.body(&quote);
    let now = client.harness.chain.slot();
    let expired = put(&body, "/expirySlot", json!(now - 1));
    let answer = client.transaction(&expired).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (409, "quote_stale")
    );
    let renewed = client
        .transaction(&put(&expired, "/refresh", json!(true)))
        .await;
    assert!(
        renewed.body["expirySlot"].as_u64() > Some(now),
        "{}",
        renewed.body
    );

    client.drain(20).await;
    for path in BOTH {
        let stale = client.post(path, &body).await;
        assert_eq!((stale.status.as_u16(), stale.code()), (409, "quote_stale"));
        let fresh = &stale.body["quote"];
        assert!(stale.body["context"]["expirySlot"].as_u64() > Some(now));
        let (out, minimum) = (&fresh["outAmount"], &fresh["minimumOut"]);
        assert!(out.as_u64() < quote["minimumOut"].as_u64());
        // Half a percent of slippage, as before.
        let out = out.as_u64().expect("an amount");
        assert!((out * 994 / 1_000..out).contains(&minimum.as_u64().expect("an amount")));
        let again = client.post(path, &client.body(fresh)).await;
        assert_eq!(again.status, 200, "{}", again.body);
        assert_eq!(again.body["quote"]["minimumOut"], *minimum);
        let renewed = client
            .post(path, &put(&body, "/refresh", json!(true)))
            .await;
        assert_eq!(renewed.status, 200, "{}", renewed.body);
        assert_eq!(renewed.body["quote"], *fresh);
    }
}

#[tokio::test]
async fn a_quote_within_its_minimum_is_enforced_as_it_stands() {
    let client = Client::start().await;
    let quote = client.quote().await;
    let least = quote["minimumOut"].as_u64().expect("an amount") - 1_000;
    let quote = put(&quote, "/minimumOut", json!(least));
    let answer = client.transaction(&client.body(&quote)).await;
    assert_eq!(answer.body["quote"]["minimumOut"], json!(least));
    let answer = client
        .post("/v1/swap/instruction", &client.body(&quote))
        .await;
    let data: Vec<u8> = serde_json::from_value(answer.body["instruction"]["data"].clone())
        .expect("an array of integers");
    assert_eq!(data[8..16], AMOUNT.to_le_bytes());
    assert_eq!(data[16..24], least.to_le_bytes());
    let accounts = answer.body["instruction"]["accounts"].as_str();
    let listed: Value = serde_json::from_str(accounts.expect("a text")).expect("JSON");
    assert_eq!(listed, answer.body["keys"]);
}

#[tokio::test]
async fn without_a_pool_both_are_for_the_best_one() {
    let client = Client::start().await;
    let quote = client.quote().await;
    let wish = json!({
        "inputMint": quote["inputMint"], "outputMint": quote["outputMint"],
        "amountIn": AMOUNT.to_string(), "slippageBps": 50,
    });
    let late = put(&client.body(&wish), "/expirySlot", json!(1));
    for path in BOTH {
        let answer = client.post(path, &client.body(&wish)).await;
        assert_eq!(answer.body["quote"], quote, "{}", answer.body);
        let answer = client.post(path, &late).await;
        assert_eq!(answer.code(), "quote_stale", "no swap could execute");
    }
}

#[tokio::test]
async fn destinations_are_checked() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    let mints = client.harness.sol_pool.state.mints;
    let account = address("destination");
    let asked = put(
        &body,
        "/destinationTokenAccount",
        json!(account.to_string()),
    );
    let refused = async |fault: &str| {
        for path in BOTH {
            let answer = client.post(path, &asked).await;
            let got = (answer.status.as_u16(), answer.code());
            assert_eq!(got, (422, "token_account_unusable"), "{}", answer.body);
            assert_eq!(answer.body["field"], "destinationTokenAccount");
            let detail = answer.body["detail"].as_str().unwrap_or_default();
            assert!(detail.contains(fault), "{detail}");
        }
    };
    refused("does not exist").await;
    let other = keypair("other").pubkey();
    client.give(account, other, mints.token_1, 0, false);
    refused("another wallet").await;
    client.give(account, wallet(), mints.token_0, 0, false);
    refused("of mint").await;
    client.give(account, wallet(), mints.token_1, 0, true);
    refused("frozen").await;
    client.give(account, wallet(), mints.token_1, 0, false);
    let answer = client.transaction(&asked).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let created = answer.body["costs"]["rent"].as_array().expect("a list");
    let associated = output_account(&client.harness.sol_pool).to_string();
    assert!(!created.iter().any(|rent| rent["account"] == associated));
}

#[tokio::test]
async fn a_balance_that_does_not_suffice_is_refused_when_asked_for() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    let checked = put(&body, "/checkBalance", json!(true));
    assert_eq!(client.transaction(&body).await.status, 200);
    let poor = client.transaction(&checked).await;
    assert_eq!(
        (poor.status.as_u16(), poor.code()),
        (422, "insufficient_balance")
    );
    assert_eq!(poor.body["unit"], "lamports");
    let needed = poor.body["needed"].as_u64().expect("an amount");
    client.enrich(needed - 1);
    assert_eq!(
        client.transaction(&checked).await.code(),
        "insufficient_balance"
    );
    client.enrich(needed);
    assert_eq!(client.transaction(&checked).await.status, 200);
    // Without wrapping, what is not wrapped does not count.
    let unwrapped = put(&checked, "/wrapAndUnwrapSol", json!(false));
    let answer = client.transaction(&unwrapped).await;
    assert_eq!(answer.code(), "insufficient_balance");
    assert_eq!(answer.body["held"], json!(0));
}

//! Fields of a swap's body: the account that pays, how much is wrapped, and how far the price may move.

use serde_json::{Value, json};
use sluice_testkit::names::address;
use sluice_transaction::Associated;

use crate::client::{AMOUNT, Client, wallet};

/// A thousandth of the SOL pool's reserve moves its price by ten basis points.
const LARGE: u64 = 10_000_000_000;

/// Bytes of the instruction that limits what a transaction loads.
const LIMIT_INSTRUCTION: u64 = 8;

/// The account that the guard takes the input from.
fn input_account(answer: &Value) -> Value {
    let instructions = answer["instructions"].as_array().expect("a list");
    let swap = instructions.iter().find(|one| one["name"] == "guardedSwap");
    let accounts = swap.expect("the swap")["accounts"].as_array().cloned();
    let accounts = accounts.expect("a list");
    let account = accounts
        .iter()
        .find(|one| one["role"] == "inputTokenAccount");
    account.expect("an input")["pubkey"].clone()
}

#[tokio::test]
async fn a_swap_that_moves_the_price_further_than_allowed_is_refused_everywhere() {
    let client = Client::start().await;
    let mints = client.harness.sol_pool.state.mints;
    let (input, output) = (mints.token_0, mints.token_1);
    let path = format!("/v1/quote?inputMint={input}&outputMint={output}&amount={LARGE}");
    let quoted = client.get(&path).await.body;
    let impact = quoted["context"]["priceImpactBps"]
        .as_u64()
        .expect("basis points");
    assert!(impact > 50, "{quoted}");
    let limited = async |most: u64| {
        let quote = client
            .get(&format!("{path}&maxPriceImpactBps={most}"))
            .await;
        let mut body = client.body(&quoted["quote"]);
        body["maxPriceImpactBps"] = json!(most);
        let transaction = client.transaction(&body).await;
        [
            quote,
            transaction,
            client.post("/v1/swap/instruction", &body).await,
        ]
    };
    for answer in limited(impact).await {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    for answer in limited(impact - 1).await {
        let got = (answer.status.as_u16(), answer.code());
        assert_eq!(got, (422, "price_impact_too_high"), "{}", answer.body);
        assert_eq!(answer.body["priceImpactBps"], json!(impact));
        assert_eq!(answer.body["maxPriceImpactBps"], json!(impact - 1));
    }
}

#[tokio::test]
async fn a_quote_never_allows_for_nothing_and_says_when_there_is_nothing() {
    let client = Client::start().await;
    let mints = client.harness.sol_pool.state.mints;
    let (input, output) = (mints.token_0, mints.token_1);
    let path = format!("/v1/quote?inputMint={input}&outputMint={output}");
    let (mut quoted, mut refused) = (0, 0);
    for amount in 1..=8 {
        for slippage in [50, 9_999, 10_000] {
            let path = format!("{path}&amount={amount}&slippageBps={slippage}");
            let answer = client.get(&path).await;
            if answer.status != 200 {
                assert_eq!(answer.code(), "amount_too_small", "{}", answer.body);
                refused += 1;
                continue;
            }
            quoted += 1;
            let minimum = answer.body["quote"]["minimumOut"].as_u64();
            assert!(minimum >= Some(1), "{}", answer.body);
            let built = client
                .transaction(&client.body(&answer.body["quote"]))
                .await;
            assert_eq!(built.status, 200, "{}", built.body);
        }
    }
    assert!(quoted > 0 && refused > 0, "{quoted} and {refused}");
}

#[tokio::test]
async fn wrapped_sol_that_is_there_is_used_unless_all_is_to_be_wrapped() {
    let client = Client::start().await;
    let sol = client.harness.sol_pool.state.mints.token_0;
    let account = Associated::of(&wallet(), &sol, &cpmm::ids::SPL_TOKEN).address;
    client.give(account, wallet(), sol, AMOUNT, false);
    let mut body = client.body(&client.quote().await);
    for (wrap_sol, wrapped) in [(None, 0), (Some("missing"), 0), (Some("always"), AMOUNT)] {
        if let Some(name) = wrap_sol {
            body["wrapSol"] = json!(name);
        }
        let answer = client.transaction(&body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body["costs"]["wrappedLamports"], json!(wrapped));
    }
    body["wrapSol"] = json!("never");
    let refused = client.transaction(&body).await;
    assert_eq!(refused.code(), "invalid_field");
    assert_eq!(refused.body["field"], "wrapSol");
}

#[tokio::test]
async fn a_named_account_pays_when_it_is_there_and_the_users() {
    let client = Client::start().await;
    let sol = client.harness.sol_pool.state.mints.token_0;
    let source = address("source");
    let mut body = client.body(&client.quote().await);
    body["sourceTokenAccount"] = json!(source.to_string());
    for owner in [None, Some(address("somebody"))] {
        if let Some(owner) = owner {
            client.give(source, owner, sol, AMOUNT, false);
        }
        for path in ["/v1/swap/transaction", "/v1/swap/instruction"] {
            let refused = client.post(path, &body).await;
            let got = (refused.status.as_u16(), refused.code());
            assert_eq!(got, (422, "token_account_unusable"), "{}", refused.body);
            assert_eq!(refused.body["field"], "sourceTokenAccount");
        }
    }
    client.give(source, wallet(), sol, AMOUNT, false);
    let answer = client.transaction(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(input_account(&answer.body), json!(source.to_string()));
    assert_eq!(answer.body["costs"]["wrappedLamports"], json!(0));
    let instruction = client.post("/v1/swap/instruction", &body).await;
    let input = &instruction.body["tokenAccounts"]["input"]["address"];
    assert_eq!(*input, json!(source.to_string()));
}

#[tokio::test]
async fn arrays_are_no_bodies() {
    let client = Client::start().await;
    let body = client.body(&client.quote().await);
    let mut nested = body.clone();
    let values: Vec<_> = body["quote"]
        .as_object()
        .expect("a quote")
        .values()
        .collect();
    nested["quote"] = json!(values);
    for path in ["/v1/swap/transaction", "/v1/swap/instruction"] {
        let whole = client
            .post(path, &json!([body["quote"], null, wallet().to_string()]))
            .await;
        assert_eq!((whole.status.as_u16(), whole.code()), (400, "invalid_body"));
        let part = client.post(path, &nested).await;
        assert_eq!((part.status.as_u16(), part.code()), (400, "invalid_field"));
        assert_eq!(part.body["field"], "quote");
    }
}

#[tokio::test]
async fn a_transaction_leaves_as_many_bytes_free_as_are_asked_for() {
    let client = Client::start().await;
    let mut body = client.body(&client.quote().await);
    let plain = client.transaction(&body).await.body;
    assert!(plain["loadedAccountsDataSizeLimit"].is_u64(), "{plain}");
    // The limit of what is loaded makes room first.
    let free = 1_232 - plain["size"].as_u64().expect("a size") + LIMIT_INSTRUCTION;
    body["sizeHeadroom"] = json!(free);
    let full = client.transaction(&body).await;
    assert_eq!(full.status, 200, "{}", full.body);
    assert_eq!(full.body["loadedAccountsDataSizeLimit"], Value::Null);
    body["sizeHeadroom"] = json!(free + 1);
    let refused = client.transaction(&body).await;
    let got = (refused.status.as_u16(), refused.code());
    assert_eq!(got, (422, "transaction_too_large"), "{}", refused.body);
    assert_eq!(refused.body["sizeHeadroom"], json!(free + 1));
    let detail = refused.body["detail"].as_str().expect("a detail");
    assert!(detail.contains("sizeHeadroom"), "{detail}");
    // What helps is judged with the bytes that are to be free.
    let remedies = refused.body["remedies"].as_array().expect("a list");
    assert!(
        remedies.contains(&json!("wrapAndUnwrapSol")),
        "{remedies:?}"
    );
    body["wrapAndUnwrapSol"] = json!(false);
    assert_eq!(client.transaction(&body).await.status, 200);
    for wrong in [json!(4_097), json!(-1), json!("x")] {
        body["sizeHeadroom"] = wrong;
        assert_eq!(client.transaction(&body).await.code(), "invalid_field");
    }
}

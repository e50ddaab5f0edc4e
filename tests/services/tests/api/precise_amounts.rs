//! Precise amounts: every amount of an answer has its string; a body of strings comes to the same.

use serde_json::{Value, json};

use crate::client::Client;

/// The members of the quote object, whose strings stand in `amounts` beside it.
const OF_QUOTES: [&str; 3] = ["amountIn", "minimumOut", "outAmount"];

/// Names of amounts, beside those that end in lamports.
const AMOUNTS: [&str; 10] = [
    "amount",
    "amountIn",
    "minimumOut",
    "outAmount",
    "expectedIn",
    "held",
    "needed",
    "reserve",
    "supply",
    "maximum",
];

fn is_amount(name: &str) -> bool {
    AMOUNTS.contains(&name) || name.ends_with("Lamports") || name == "lamports"
}

/// The amounts that were found, each held against its string.
fn check(body: &Value, at: &str) -> usize {
    match body {
        Value::Array(items) => items.iter().map(|item| check(item, at)).sum(),
        Value::Object(members) => {
            let mut found = 0;
            for (name, value) in members {
                let place = format!("{at}/{name}");
                if name == "quote" {
                    let amounts = body.get("amounts").or(body.pointer("/context/amounts"));
                    let amounts = amounts.unwrap_or_else(|| panic!("no amounts beside {place}"));
                    for of_quote in OF_QUOTES {
                        assert_eq!(amounts[of_quote], json!(value[of_quote].to_string()));
                        found += 1;
                    }
                } else if is_amount(name) && value.is_u64() {
                    let twin = &body[format!("{name}String")];
                    assert_eq!(*twin, json!(value.to_string()), "{place}");
                    found += 1;
                } else {
                    found += check(value, &place);
                }
            }
            found
        }
        _ => 0,
    }
}

#[tokio::test]
async fn every_amount_of_every_answer_has_its_string() {
    let client = Client::start().await;
    let mints = client.harness.sol_pool.state.mints;
    let pair = format!("inputMint={}&outputMint={}", mints.token_0, mints.token_1);
    let exact_in = client
        .get(&format!("/v1/quote?{pair}&amount=1000000"))
        .await;
    assert!(check(&exact_in.body, "exact in") >= 5);
    let path = format!("/v1/quote?{pair}&amount=1000000&swapMode=ExactOut");
    let exact_out = client.get(&path).await;
    assert!(check(&exact_out.body, "exact out") >= 6);

    let mut body = client.body(&exact_in.body["quote"]);
    let transaction = client.transaction(&body).await;
    assert_eq!(transaction.status, 200, "{}", transaction.body);
    assert!(check(&transaction.body, "transaction") >= 10);
    let instruction = client.post("/v1/swap/instruction", &body).await;
    assert!(check(&instruction.body, "instruction") >= 3);
    body["checkBalance"] = json!(true);
    let poor = client.transaction(&body).await;
    assert_eq!(poor.code(), "insufficient_balance");
    assert!(check(&poor.body, "problem") >= 2);
    let pools = client.get("/v1/pools").await;
    assert!(check(&pools.body, "pools") >= 6);
    let mint = client.get(&format!("/v1/mints/{}", mints.token_1)).await;
    assert!(check(&mint.body, "mint") >= 1);

    client.drain(20).await;
    body["checkBalance"] = json!(false);
    let stale = client.transaction(&body).await;
    assert_eq!(stale.code(), "quote_stale", "{}", stale.body);
    assert!(check(&stale.body, "stale") >= 3);
}

#[tokio::test]
async fn a_body_whose_amounts_are_strings_comes_to_the_same() {
    let client = Client::start().await;
    let quote = client.quote().await;
    let mut in_strings = quote.clone();
    for name in OF_QUOTES {
        in_strings[name] = json!(quote[name].to_string());
    }
    let mut body = client.body(&quote);
    body["priorityFeeLamports"] = json!(1_000);
    let mut text = client.body(&in_strings);
    text["priorityFeeLamports"] = json!("1000");
    for path in ["/v1/swap/transaction", "/v1/swap/instruction"] {
        let (one, other) = (
            client.post(path, &body).await,
            client.post(path, &text).await,
        );
        assert_eq!((one.status, other.status), (one.status, one.status));
        assert_eq!(one.status, 200, "{}", one.body);
        assert_eq!(one.body["quote"], other.body["quote"]);
        assert_eq!(one.body["costs"], other.body["costs"]);
    }
}

//! Precise amounts: every amount of an answer has its string; a body of strings comes to the same.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::client::Client;

/// The members of the quote object, whose strings stand in `amounts` beside it.
const OF_QUOTES: [&str; 3] = ["amountIn", "minimumOut", "outAmount"];

/// Numbers of answers that are no amounts: counts, times, rates, sizes and compute units, none of which comes near to the 2^53
/// up to which every JSON reader is exact.
const NO_AMOUNTS: [&str; 30] = [
    "acceptedBy",
    "basisPoints",
    "blockTime",
    "code",
    "computeUnitLimit",
    "creatorPpm",
    "decimals",
    "expirySlot",
    "fundPpm",
    "headroom",
    "instruction",
    "lastValidBlockHeight",
    "learned",
    "loadedAccountsDataSize",
    "loadedAccountsDataSizeLimit",
    "model",
    "openTime",
    "percentile",
    "pools",
    "priceImpactBps",
    "protocolPpm",
    "samples",
    "size",
    "slippageBps",
    "slot",
    "slots",
    "status",
    "tradePpm",
    "transactionComputeUnitLimit",
    "unsupportedExtension",
];

/// The same of problems, whose members the API's description has as words alone.
const NO_AMOUNTS_OF_PROBLEMS: [&str; 5] = [
    "errorCode",
    "limit",
    "maxPriceImpactBps",
    "sizeHeadroom",
    "slotLag",
];

/// Whether a number of this name is one: what is not known to be none.
fn is_amount(name: &str) -> bool {
    !NO_AMOUNTS.contains(&name) && !NO_AMOUNTS_OF_PROBLEMS.contains(&name)
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
                } else if value.is_number() && is_amount(name) {
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

/// All that the answers of the public routes are made of, by the API's description.
fn schemas_of_answers(document: &Value) -> BTreeMap<String, &Value> {
    let mut found = BTreeMap::new();
    let paths = document["paths"].as_object().expect("paths").iter();
    let public = paths.filter(|(path, _)| path.starts_with("/v1/"));
    for operation in public.flat_map(|(_, operations)| operations.as_object().into_iter().flatten())
    {
        collect(document, &operation.1["responses"], &mut found);
    }
    found
}

/// Adds the schemas that a part of the document refers to.
fn collect<'a>(document: &'a Value, part: &'a Value, found: &mut BTreeMap<String, &'a Value>) {
    let pointer = part["$ref"]
        .as_str()
        .and_then(|name| name.strip_prefix('#'));
    if let Some(pointer) = pointer
        && !found.contains_key(pointer)
    {
        let schema = document.pointer(pointer).expect("what is referred to");
        found.insert(pointer.to_owned(), schema);
        collect(document, schema, found);
    }
    for inner in inner(part) {
        collect(document, inner, found);
    }
}

fn inner(part: &Value) -> Vec<&Value> {
    match part {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

/// Names of the numbers in a schema and all objects within it that have no string beside them.
fn numbers_alone(schema: &Value) -> BTreeSet<&str> {
    let mut alone = BTreeSet::new();
    let properties = schema["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        if may_be_number(property) && schema["properties"].get(format!("{name}String")).is_none() {
            alone.insert(name.as_str());
        }
    }
    alone.extend(inner(schema).into_iter().flat_map(numbers_alone));
    alone
}

/// Whether a value of this schema may be a number, also beside null or others.
fn may_be_number(schema: &Value) -> bool {
    let kind = &schema["type"];
    let kinds = kind
        .as_array()
        .map_or(std::slice::from_ref(kind), Vec::as_slice);
    let choices = ["oneOf", "anyOf", "allOf"].map(|choice| schema[choice].as_array());
    kinds
        .iter()
        .any(|kind| *kind == "integer" || *kind == "number")
        || choices.into_iter().flatten().flatten().any(may_be_number)
}

#[tokio::test]
async fn every_number_of_the_description_has_its_string_or_is_known_to_be_no_amount() {
    let client = Client::start().await;
    let document = client.get("/openapi.json").await.body;
    let schemas = schemas_of_answers(&document);
    let mut alone = BTreeSet::new();
    for (pointer, schema) in &schemas {
        let mut of_schema = numbers_alone(schema);
        if pointer.ends_with("/Quote") {
            // Seven members and no more: their strings stand in `amounts` beside them.
            for name in OF_QUOTES {
                assert!(of_schema.remove(name), "{name} of {pointer}");
            }
        }
        alone.extend(of_schema);
    }
    assert_eq!(
        alone,
        BTreeSet::from(NO_AMOUNTS),
        "a number has no string and is not listed, or is listed and has one"
    );
    let amounts = schemas
        .iter()
        .find(|(pointer, _)| pointer.ends_with("/QuoteAmounts"));
    let (_, amounts) = amounts.expect("amounts of quotes");
    for name in OF_QUOTES {
        assert!(amounts["properties"].get(name).is_some(), "{name}");
    }
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

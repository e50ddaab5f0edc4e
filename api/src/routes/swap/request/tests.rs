//! Tests of the swap request: fields, defaults and refusals.

use serde_json::{Value, json};

use super::*;

const A: &str = "So11111111111111111111111111111111111111112";
const B: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const WALLET: &str = "9B5XszUGdMaxCZ7uSQhPzdks5ZQSmWxrmzCSvtJ6Ns6g";

fn body(quote: Value) -> SwapRequest {
    serde_json::from_value(json!({ "quote": quote, "userPublicKey": WALLET }))
        .expect("shape is right")
}

fn full() -> Value {
    json!({
        "amountIn": 10, "inputMint": A, "minimumOut": 5, "outAmount": 6, "outputMint": B,
        "pool": B, "program": cpmm::ids::PROGRAM_ID.to_string(),
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut quote = full();
    quote[field] = value;
    quote
}

#[test]
fn a_quote_is_taken_as_it_stands() {
    let swap = body(full()).check(&cpmm::ids::PROGRAM_ID).expect("valid");
    let given = WantedBound::Minimum {
        minimum_out: 5,
        out_amount: Some(6),
    };
    assert_eq!(swap.bound, given);
    assert_eq!(swap.ask.amount.get(), 10);
    assert!(swap.wrap_and_unwrap_sol);
    assert_eq!(swap.version, TransactionVersion::V0);
    assert_eq!((swap.refresh, swap.check_balance), (false, false));
    assert_eq!((swap.priority_fee, swap.expiry_slot), (0, None));
    assert_eq!(swap.unit_headroom, 6_000);
}

#[test]
fn rejects_quotes_that_cannot_be_executed() {
    let code = |quote: Value| {
        body(quote)
            .check(&cpmm::ids::PROGRAM_ID)
            .expect_err("refused")
            .code()
    };
    assert_eq!(
        code(with("minimumOut", json!(0))),
        "minimum_out_out_of_range"
    );
    assert_eq!(
        code(with("minimumOut", json!(7))),
        "minimum_out_out_of_range"
    );
    assert_eq!(code(with("minimumOut", Value::Null)), "missing_field");
    assert_eq!(code(with("program", json!(A))), "wrong_program");
    assert_eq!(code(with("program", json!("A"))), "invalid_field");
    assert_eq!(code(with("amountIn", json!(0))), "invalid_field");
    assert_eq!(code(with("amountIn", Value::Null)), "missing_field");
    assert_eq!(code(with("outputMint", json!(A))), "invalid_field");
    assert_eq!(code(with("slippageBps", json!(1))), "invalid_field");
}

#[test]
fn without_a_pool_the_minimum_is_given_or_derived() {
    let wish = |extra: Value| {
        let mut quote = json!({ "amountIn": "10", "inputMint": A, "outputMint": B });
        for (name, value) in extra.as_object().into_iter().flatten() {
            quote[name] = value.clone();
        }
        body(quote)
            .check(&cpmm::ids::PROGRAM_ID)
            .map(|swap| swap.bound)
    };
    let bps = |n| BasisPoints::new(n).expect("in range");
    let slippage = |n| Some(WantedBound::Slippage(bps(n)));
    assert_eq!(wish(json!({})).ok(), slippage(50));
    assert_eq!(wish(json!({ "slippageBps": 7 })).ok(), slippage(7));
    let given = WantedBound::Minimum {
        minimum_out: 3,
        out_amount: None,
    };
    assert_eq!(wish(json!({ "minimumOut": "3" })).ok(), Some(given));
    assert!(wish(json!({ "minimumOut": 3, "slippageBps": 7 })).is_err());
}

#[test]
fn a_refresh_needs_what_was_quoted() {
    let request = |quote: Value| -> SwapRequest {
        serde_json::from_value(json!({
            "quote": quote, "userPublicKey": WALLET, "refresh": true,
        }))
        .expect("shape is right")
    };
    assert!(request(full()).check(&cpmm::ids::PROGRAM_ID).is_ok());
    let without = request(with("outAmount", Value::Null)).check(&cpmm::ids::PROGRAM_ID);
    assert_eq!(without.expect_err("refused").code(), "missing_field");
}

#[test]
fn headroom_is_bounded() {
    let with = |headroom: Value| {
        let body =
            json!({ "quote": full(), "userPublicKey": WALLET, "computeUnitHeadroom": headroom });
        let request: SwapRequest = serde_json::from_value(body).expect("shape is right");
        let swap = request.check(&cpmm::ids::PROGRAM_ID);
        swap.map(|swap| swap.unit_headroom)
            .map_err(|error| error.code())
    };
    assert_eq!(with(json!(0)), Ok(0));
    assert_eq!(with(json!("1000000")), Ok(1_000_000));
    assert_eq!(with(json!(1_000_001)), Err("invalid_field"));
    assert_eq!(with(json!(u64::MAX)), Err("invalid_field"));
}

#[test]
fn exact_outputs_have_a_maximum_and_one_pool() {
    let with = |change: fn(&mut Value)| {
        let mut body = json!({ "quote": full(), "userPublicKey": WALLET, "swapMode": "ExactOut" });
        body["quote"]["minimumOut"] = json!(6);
        change(&mut body);
        let request: SwapRequest = serde_json::from_value(body).expect("shape is right");
        let swap = request.check(&cpmm::ids::PROGRAM_ID);
        swap.map(|swap| (swap.ask.amount.get(), swap.bound))
            .map_err(|error| error.code())
    };
    let maximum = WantedBound::Maximum {
        amount_in: 10,
        slippage: BasisPoints::new(50).expect("in range"),
    };
    assert_eq!(with(|_| ()), Ok((6, maximum)));
    assert_eq!(
        with(|body| body["quote"]["minimumOut"] = json!(5)),
        Err("minimum_out_out_of_range")
    );
    assert_eq!(
        with(|body| body["quote"]["amountIn"] = Value::Null),
        Err("missing_field")
    );
    assert_eq!(
        with(|body| body["quote"]["outAmount"] = Value::Null),
        Err("missing_field")
    );
    assert_eq!(
        with(|body| body["quote"]["pool"] = json!(format!("{A},{B}"))),
        Err("invalid_field")
    );
    assert_eq!(
        with(|body| body["refresh"] = json!(true)),
        Err("missing_field")
    );
}

#[test]
fn rejects_unknown_fields() {
    let unknown = json!({ "quote": full(), "userPublicKey": WALLET, "slippage": 1 });
    assert!(serde_json::from_value::<SwapRequest>(unknown).is_err());
}

#[test]
fn the_version_has_two_names_that_must_agree() {
    let with = |fields: Value| {
        let mut body = json!({ "quote": full(), "userPublicKey": WALLET });
        for (name, value) in fields.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let request: SwapRequest = serde_json::from_value(body).map_err(|_| "invalid_field")?;
        let swap = request.check(&cpmm::ids::PROGRAM_ID);
        swap.map(|swap| swap.version).map_err(|error| error.code())
    };
    let [legacy, version_0, version_1] = TransactionVersion::ALL;
    let cases = [
        (json!({ "transactionVersion": "legacy" }), Ok(legacy)),
        (json!({ "transactionVersion": 0 }), Ok(version_0)),
        (json!({ "transactionVersion": 1 }), Ok(version_1)),
        (json!({ "transactionVersion": "1" }), Ok(version_1)),
        (json!({ "transactionVersion": null }), Ok(version_0)),
        (json!({ "asLegacyTransaction": true }), Ok(legacy)),
        (
            json!({ "transactionVersion": "legacy", "asLegacyTransaction": true }),
            Ok(legacy),
        ),
        (
            json!({ "transactionVersion": 1, "asLegacyTransaction": false }),
            Ok(version_1),
        ),
        (
            json!({ "transactionVersion": 0, "asLegacyTransaction": true }),
            Err("invalid_field"),
        ),
        (
            json!({ "transactionVersion": "legacy", "asLegacyTransaction": false }),
            Err("invalid_field"),
        ),
        (json!({ "transactionVersion": 2 }), Err("invalid_field")),
        (
            json!({ "transactionVersion": "Legacy" }),
            Err("invalid_field"),
        ),
        (json!({ "transactionVersion": true }), Err("invalid_field")),
    ];
    for (fields, expected) in cases {
        assert_eq!(with(fields.clone()), expected, "{fields}");
    }
}

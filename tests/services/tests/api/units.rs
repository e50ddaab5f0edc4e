//! Compute units that the API learns from swaps on the chain.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use cpmm::{SWAP_EVENT_DISCRIMINATOR, ids};
use serde_json::{Value, json};
use sluice_geyser::{Body, TransactionUpdate};
use sluice_testkit::{pool::Pool, updates};

use crate::client::{AMOUNT, Client, wallet};

/// Until a swap of the chain must have been taken in.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the guard uses itself, of each swap without an expiry.
const GUARD: u64 = 2_000;

/// What the swaps of the chain use here: twice as much as the stand-in.
const DEAR: u32 = 12_400;

/// A transaction in which a router swaps through this pool, token 0 in.
fn swap_through(pool: &Pool, number: u8) -> TransactionUpdate {
    let amounts = |amounts: [u64; 6]| amounts.map(u64::to_le_bytes).concat();
    let mints = [pool.state.mints.token_0, pool.state.mints.token_1];
    let reserve = 1_000_000_000_000;
    let event = [
        &SWAP_EVENT_DISCRIMINATOR[..],
        pool.address.as_ref(),
        &amounts([reserve, reserve, 1_000_000, 997_000, 0, 0]),
        &[1],
        mints[0].as_ref(),
        mints[1].as_ref(),
        &2_500_u64.to_le_bytes(),
        &[0; 9],
    ]
    .concat();
    let Body::Transaction(mut transaction) = updates::transaction(0, number).body else {
        unreachable!("it is one");
    };
    let (router, exchange) = (updates::program(), ids::PROGRAM_ID);
    transaction.account_keys.push(exchange);
    transaction.log_messages = vec![
        format!("Program {router} invoke [1]"),
        format!("Program {exchange} invoke [2]"),
        format!("Program data: {}", BASE64.encode(event)),
        format!("Program {exchange} consumed {DEAR} of 90000 compute units"),
        format!("Program {exchange} success"),
        format!("Program {router} consumed 30000 of 200000 compute units"),
        format!("Program {router} success"),
    ];
    *transaction
}

impl Client {
    /// The limit of a swap of token 0 through this pool, as an instruction.
    async fn limit(&self, pool: &Pool) -> u64 {
        let mints = pool.state.mints;
        let quote = json!({
            "amountIn": AMOUNT,
            "inputMint": mints.token_0.to_string(),
            "outputMint": mints.token_1.to_string(),
            "slippageBps": 100,
        });
        let body = json!({ "quote": quote, "userPublicKey": wallet().to_string() });
        let answer = self.post("/v1/swap/instruction", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body["computeUnitLimit"].as_u64().expect("a limit")
    }

    async fn until_limit(&self, pool: &Pool, met: impl Fn(u64) -> bool) -> u64 {
        let begun = Instant::now();
        loop {
            let limit = self.limit(pool).await;
            if met(limit) {
                return limit;
            }
            assert!(begun.elapsed() < PATIENCE, "the limit is still {limit}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn units(body: &Value, part: &str) -> u64 {
    let units = &body["computeUnits"][part];
    units
        .as_u64()
        .unwrap_or_else(|| panic!("no {part}: {body}"))
}

#[tokio::test]
async fn a_swap_raises_the_limit_of_its_pool_and_a_second_pool_that_of_all() {
    let client = Client::start().await;
    let (near, far, fee) = (
        &client.harness.sol_pool,
        &client.harness.far_pool,
        &client.harness.fee_pool,
    );
    let (near_before, fee_before) = (client.limit(near).await, client.limit(fee).await);
    assert!(near_before < GUARD + u64::from(DEAR));

    client.harness.chain.execute(swap_through(near, 1));
    let needed = GUARD + u64::from(DEAR);
    let near_after = client.until_limit(near, |limit| limit >= needed).await;
    assert!(near_after <= needed + needed / 50, "{near_after}");
    assert_eq!(
        client.limit(fee).await,
        fee_before,
        "one pool raised others"
    );

    client.harness.chain.execute(swap_through(far, 2));
    let fee_after = client
        .until_limit(fee, |limit| limit > fee_before * 3 / 2)
        .await;
    // No other build of the exchange is taken for what two pools show.
    assert!(fee_after < fee_before * 2, "{fee_after}");
}

#[tokio::test]
async fn the_answer_says_what_its_limit_rests_on() {
    let client = Client::start().await;
    let near = &client.harness.sol_pool;
    let body = client.body(&client.quote().await);
    let first = client.transaction(&body).await.body;
    assert_eq!(units(&first, "samples"), 0);
    assert!(units(&first, "learned") > units(&first, "model"));
    client.harness.chain.execute(swap_through(near, 1));
    let before = units(&first, "learned");
    client
        .until_limit(near, |limit| limit >= GUARD + u64::from(DEAR))
        .await;
    let second = client.transaction(&body).await.body;
    assert_eq!(units(&second, "samples"), 1);
    assert_eq!(units(&second, "model"), units(&first, "model"));
    assert!(units(&second, "learned") > before);
    let limit = units(&second, "learned") + units(&second, "headroom");
    assert_eq!(second["computeUnitLimit"], json!(limit));
}

#[tokio::test]
async fn what_is_learned_and_what_ran_beyond_it_is_exported() {
    let client = Client::start().await;
    let near = &client.harness.sol_pool;
    let metrics = async || {
        let request = client.http.get(format!("{}/metrics", client.harness.url));
        let answer = request.send().await.expect("an answer");
        answer.text().await.expect("a text")
    };
    let says = |text: &str, line: &str| text.lines().any(|each| each == line);
    let before = metrics().await;
    for line in [
        "sluice_api_learned_units_ratio 1.05",
        "sluice_api_learned_units_samples 0",
        "sluice_api_learned_units_short_total 0",
    ] {
        assert!(says(&before, line), "{line}\n{before}");
    }
    // It uses more than is allowed at first, and no more than is allowed after it.
    for (number, samples) in [(1, 1), (2, 2)] {
        client.harness.chain.execute(swap_through(near, number));
        let taken_in = format!("sluice_api_learned_units_samples {samples}");
        let begun = Instant::now();
        let text = loop {
            let text = metrics().await;
            if says(&text, &taken_in) {
                break text;
            }
            assert!(begun.elapsed() < PATIENCE, "{text}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let shape = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(shape("sluice_api_learned_units_shape_ratio{"), 1, "{text}");
        assert_eq!(shape("sluice_api_learned_units_shape_samples{"), 1);
        assert!(
            says(&text, "sluice_api_learned_units_short_total 1"),
            "{text}"
        );
    }
}

//! Simulated transactions: what the node is asked, what is shown of its answer, how a failing one is refused.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};
use sluice_harness::api::Lines;
use sluice_testkit::names::keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use crate::client::{Client, output_account, wallet};

const SIMULATE: &str = "simulateTransaction";

/// The body of a swap that another wallet pays for.
async fn body(client: &Client) -> Value {
    let mut body = client.body(&client.quote().await);
    body["feePayer"] = json!(payer().to_string());
    body["simulate"] = json!(true);
    body
}

fn payer() -> Pubkey {
    keypair("fee payer").pubkey()
}

fn decoded(text: &Value) -> VersionedTransaction {
    let bytes = BASE64.decode(text.as_str().expect("a transaction"));
    wincode::deserialize_exact(&bytes.expect("base64")).expect("a transaction")
}

/// The accounts of the transaction that is built for this body.
async fn accounts(client: &Client, body: &Value) -> Vec<Pubkey> {
    let mut plain = body.clone();
    plain["simulate"] = json!(false);
    let answer = client.transaction(&plain).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["simulation"], Value::Null);
    let transaction = decoded(&answer.body["transaction"]);
    transaction.message.static_account_keys().to_vec()
}

/// What a node answers to a transaction of these accounts, in which the wallet receives tokens.
fn success(client: &Client, accounts: &[Pubkey]) -> Value {
    let before: Vec<u64> = (1..).take(accounts.len()).map(|n: u64| n * 1_000).collect();
    let mut after = before.clone();
    after[0] -= 10;
    let mint = client.harness.sol_pool.state.mints.token_1;
    let account = output_account(&client.harness.sol_pool);
    let position = |address: Pubkey| accounts.iter().position(|one| *one == address);
    let token = |index: Option<usize>, owner: Pubkey, amount: u64| {
        json!({
            "accountIndex": index.expect("in the transaction"),
            "mint": mint.to_string(),
            "owner": owner.to_string(),
            "uiTokenAmount": { "amount": amount.to_string(), "decimals": 6 },
        })
    };
    let vault = position(client.harness.sol_pool.state.vaults.token_1);
    let authority = cpmm::ids::AUTHORITY;
    json!({
        "context": { "slot": 77 },
        "value": {
            "err": null,
            "logs": [],
            "unitsConsumed": 31_337,
            "loadedAccountsDataSize": 424_242,
            "preBalances": before,
            "postBalances": after,
            "preTokenBalances": [token(vault, authority, u64::MAX)],
            "postTokenBalances": [
                token(vault, authority, u64::MAX - 9),
                token(position(account), wallet(), 9),
            ],
        },
    })
}

#[tokio::test]
async fn the_answer_says_what_the_node_found() {
    let client = Client::start().await;
    let body = body(&client).await;
    let accounts = accounts(&client, &body).await;
    assert_eq!(client.harness.node.count(SIMULATE), 0);
    let answer = success(&client, &accounts);
    client.harness.node.script(SIMULATE, answer);
    let answer = client.transaction(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let found = &answer.body["simulation"];
    assert_eq!(found["slot"], 77);
    assert_eq!(found["computeUnits"], 31_337);
    assert_eq!(found["computeUnitsString"], "31337");
    assert_eq!(found["loadedAccountsDataSize"], 424_242);
    let payers = json!({
        "wallet": payer().to_string(),
        "before": 1_000, "beforeString": "1000", "after": 990, "afterString": "990",
    });
    let users = json!({
        "wallet": wallet().to_string(),
        "before": 2_000, "beforeString": "2000", "after": 2_000, "afterString": "2000",
    });
    assert_eq!(found["lamports"], json!([payers, users]));
    let received = json!([{
        "account": output_account(&client.harness.sol_pool).to_string(),
        "mint": client.harness.sol_pool.state.mints.token_1.to_string(),
        "owner": wallet().to_string(),
        "before": 0, "beforeString": "0", "after": 9, "afterString": "9",
    }]);
    assert_eq!(found["tokens"], received);
    // The very transaction that is answered, in a state that the market knows of.
    let asked = client.harness.node.params(SIMULATE).expect("it was asked");
    assert_eq!(asked[0], answer.body["transaction"]);
    assert_eq!(asked[1]["replaceRecentBlockhash"], json!(false));
    assert_eq!(asked[1]["sigVerify"], json!(false));
    assert!(
        asked[1]["minContextSlot"].as_u64() >= Some(1_000),
        "{asked}"
    );
}

#[tokio::test]
async fn a_transaction_that_fails_is_answered_with_the_programs_error() {
    let client = Client::start().await;
    let body = body(&client).await;
    let exchange = cpmm::ids::PROGRAM_ID;
    let guard = swap_guard_interface::PROGRAM_ID;
    let why = "custom program error: 0x1775";
    let logs = [
        format!("Program {guard} invoke [1]"),
        format!("Program {exchange} invoke [2]"),
        format!("Program {exchange} failed: {why}"),
        format!("Program {guard} failed: {why}"),
    ];
    let simulated = |error: Value, logs: &[String]| {
        json!({
            "context": { "slot": 77 },
            "value": { "err": error, "logs": logs, "unitsConsumed": 5 },
        })
    };
    let names = accounts(&client, &body).await.len();
    assert!(names > 0);
    let mut plain = body.clone();
    plain["simulate"] = json!(false);
    let built = client.transaction(&plain).await.body;
    let instructions = built["instructions"].as_array().expect("a list");
    let swap = instructions
        .iter()
        .position(|one| one["name"] == "guardedSwap");
    let error = json!({ "InstructionError": [swap, { "Custom": 6005 }] });
    client
        .harness
        .node
        .script(SIMULATE, simulated(error, &logs));
    let refused = client.transaction(&body).await;
    let got = (refused.status.as_u16(), refused.code());
    assert_eq!(got, (422, "simulation_failed"), "{}", refused.body);
    assert_eq!(refused.body["raisedBy"], "exchange");
    assert_eq!(refused.body["program"], json!(exchange.to_string()));
    assert_eq!(refused.body["errorCode"], 6005);
    assert_eq!(refused.body["errorName"], "ExceededSlippage");
    assert_eq!(refused.body["instruction"], json!(swap));
    assert_eq!(refused.body["instructionName"], "guardedSwap");
    assert_eq!(refused.body["logs"], json!(logs));
    // Before any instruction.
    let early = simulated(json!("AccountNotFound"), &[]);
    client.harness.node.script(SIMULATE, early);
    let refused = client.transaction(&body).await;
    assert_eq!(refused.code(), "simulation_failed");
    assert_eq!(refused.body["raisedBy"], "other");
    assert_eq!(refused.body["program"], Value::Null);
    let detail = refused.body["detail"].as_str().expect("a text");
    assert!(detail.contains("AccountNotFound"), "{detail}");
}

#[tokio::test]
async fn a_simulation_costs_the_client_a_request_to_the_node() {
    let client = Client::start_set(Lines {
        api: "[api.clients]\nloopback = true\nnode-requests-per-minute = 1\nnode-requests-burst = 2",
        ..Lines::default()
    })
    .await;
    let mut body = body(&client).await;
    body["simulate"] = json!(false);
    let accounts = accounts(&client, &body).await;
    let answer = success(&client, &accounts);
    client.harness.node.script(SIMULATE, answer);
    body["simulate"] = json!(true);
    let answer = client.transaction(&body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let refused = client.transaction(&body).await;
    assert_eq!(refused.status, 429, "{}", refused.body);
}

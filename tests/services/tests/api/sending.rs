//! Signed swaps that are sent to every node and followed: forks, gaps, expiry, faults of nodes, refusals.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use cpmm::ids;
use reqwest::Response;
use serde_json::{Value, json};
use sluice_geyser::{Body, TransactionUpdate};
use sluice_harness::api::Lines;
use sluice_testkit::{names::keypair, rpc_node::RpcNode, updates};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use swap_guard_interface::{PROGRAM_ID, SWAPPED_DISCRIMINATOR};
use tokio::time::{sleep, timeout};

use crate::client::{Answer, Client};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Slots that must have passed before a transaction is built, so that all of its life is seen.
const BEGINNING: u64 = 40;

/// What the guard says that was received.
const RECEIVED: u64 = (1 << 60) + 1;

/// A swap that its wallet has signed.
struct Signed {
    bytes: Vec<u8>,
    signature: Signature,
    last_valid: u64,
}

impl Signed {
    fn body(&self) -> Value {
        json!({ "transaction": BASE64.encode(&self.bytes), "lastValidBlockHeight": self.last_valid })
    }

    /// The transaction as a slot executes it: with these lines of the guard, and this error.
    fn executed(&self, logs: Vec<String>, error: Option<&str>) -> TransactionUpdate {
        let Body::Transaction(mut update) = updates::transaction(0, 1).body else {
            unreachable!("it is one");
        };
        update.signature = self.signature;
        update.account_keys.push(PROGRAM_ID);
        update.log_messages = logs;
        update.error = error.map(str::to_owned);
        *update
    }

    fn succeeded(&self) -> TransactionUpdate {
        let amounts = [1_000_000, RECEIVED].map(u64::to_le_bytes).concat();
        let event = [&SWAPPED_DISCRIMINATOR[..], &[2; 64], &amounts].concat();
        let logs = vec![
            format!("Program {PROGRAM_ID} invoke [1]"),
            format!("Program data: {}", BASE64.encode(event)),
            format!("Program {PROGRAM_ID} consumed 9000 of 90000 compute units"),
            format!("Program {PROGRAM_ID} success"),
        ];
        self.executed(logs, None)
    }

    fn failed(&self) -> TransactionUpdate {
        let logs = vec![
            format!("Program {PROGRAM_ID} invoke [1]"),
            format!("Program {PROGRAM_ID} consumed 9000 of 90000 compute units"),
            format!("Program {PROGRAM_ID} failed: custom program error: 0x1770"),
        ];
        self.executed(logs, Some("InstructionError(1, Custom(6000))"))
    }
}

impl Client {
    /// As `start`, once all of a new transaction's life is seen, with these nodes more to send to.
    pub async fn start_sending(more: &[&RpcNode]) -> Self {
        let urls: Vec<_> = more.iter().map(|node| node.url()).collect();
        let chain = format!("send-urls = {}", json!(urls));
        let lines = Lines {
            chain: &chain,
            api: "",
        };
        let client = Self::start_set(lines).await;
        let begun = client.harness.chain.slot();
        while client.harness.chain.slot() < begun + BEGINNING {
            sleep(Duration::from_millis(20)).await;
        }
        client
    }

    /// A swap, built and signed; swaps of different fees are different.
    async fn signed(&self, fee: u64) -> Signed {
        let mut body = self.body(&self.quote().await);
        body["priorityFeeLamports"] = json!(fee);
        let answer = self.transaction(&body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let text = answer.body["transaction"].as_str().expect("a transaction");
        let bytes = BASE64.decode(text).expect("base64");
        let unsigned: VersionedTransaction =
            wincode::deserialize_exact(&bytes).expect("a transaction");
        let signed = VersionedTransaction::try_new(unsigned.message, &[keypair("client")]);
        let signed = signed.expect("the wallet is the only signer");
        Signed {
            signature: signed.signatures[0],
            bytes: wincode::serialize(&signed).expect("bytes"),
            last_valid: answer.body["lastValidBlockHeight"]
                .as_u64()
                .expect("a height"),
        }
    }

    async fn send(&self, body: &Value) -> Answer {
        self.post("/v1/transactions", body).await
    }

    async fn sent(&self, swap: &Signed) -> Value {
        let answer = self.send(&swap.body()).await;
        assert_eq!(answer.status, 202, "{}", answer.body);
        assert_eq!(answer.body["signature"], json!(swap.signature.to_string()));
        answer.body
    }

    async fn status(&self, swap: &Signed) -> Value {
        let answer = self
            .get(&format!("/v1/transactions/{}", swap.signature))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// What is known of it once its status is this one.
    async fn until(&self, swap: &Signed, status: &str) -> Value {
        let wait = async {
            loop {
                let known = self.status(swap).await;
                if known["status"] == json!(status) {
                    return known;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let met = timeout(PATIENCE, wait).await;
        match met {
            Ok(known) => known,
            Err(_) => panic!("not {status}: {}", self.status(swap).await),
        }
    }

    async fn follow(&self, swap: &Signed) -> Response {
        let path = format!("/v1/transactions/{}/stream", swap.signature);
        let request = self.http.get(format!("{}{path}", self.harness.url));
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        response
    }
}

/// Waits until this holds.
async fn until(met: impl Fn() -> bool) {
    let wait = async {
        while !met() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("in time");
}

/// The statuses of a stream that has ended.
async fn statuses(stream: Response) -> Vec<Value> {
    let text = timeout(PATIENCE, stream.text()).await.expect("an end");
    let text = text.expect("an unbroken stream");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

#[tokio::test]
async fn a_swap_is_sent_to_all_nodes_and_followed_until_it_is_finalized() {
    let other = RpcNode::holding([]).await.expect("a node");
    let client = Client::start_sending(&[&other]).await;
    let swap = client.signed(1).await;
    let sent = client.sent(&swap).await;
    assert_eq!(sent["status"], json!("sent"));
    assert_eq!(sent["lastValidBlockHeight"], json!(swap.last_valid));
    let stream = client.follow(&swap).await;
    for node in [&client.harness.node, &other] {
        until(|| node.sent().contains(&swap.bytes)).await;
    }
    client.harness.chain.execute(swap.succeeded());
    let known = client.until(&swap, "finalized").await;
    assert_eq!(known["acceptedBy"], json!(2));
    assert_eq!(known["spent"], json!(1_000_000));
    assert_eq!(known["received"], json!(RECEIVED));
    assert_eq!(known["receivedString"], json!(RECEIVED.to_string()));
    assert_eq!(known["error"], Value::Null);
    assert!(known["slot"].is_u64());
    let statuses = statuses(stream).await;
    assert_eq!(
        statuses.last(),
        Some(&known),
        "the stream ends with the last one"
    );
    let names: Vec<_> = statuses
        .iter()
        .map(|status| status["status"].clone())
        .collect();
    let order = ["sent", "processed", "confirmed", "finalized"].map(Value::from);
    let ranks: Vec<_> = names
        .iter()
        .map(|name| order.iter().position(|each| each == name))
        .collect();
    assert!(
        ranks.is_sorted() && ranks.iter().all(Option::is_some),
        "{names:?}"
    );
    // No node was asked what became of it.
    for method in ["getSignatureStatuses", "getTransaction"] {
        assert_eq!(client.harness.node.count(method), 0);
    }
    assert_eq!(client.harness.node.not_understood(), [] as [String; 0]);
    assert_eq!(other.not_understood(), [] as [String; 0]);
}

#[tokio::test]
async fn it_is_sent_again_until_it_is_confirmed_and_sending_it_twice_changes_nothing() {
    let client = Client::start_sending(&[]).await;
    let swap = client.signed(1).await;
    client.sent(&swap).await;
    let times = || client.harness.node.sent().len();
    until(|| times() >= 2).await;
    client.harness.chain.execute(swap.succeeded());
    client.until(&swap, "confirmed").await;
    let again = client.sent(&swap).await;
    assert_ne!(again["status"], json!("sent"));
    client.until(&swap, "finalized").await;
    // Another one goes out at once and in a later round, this one in none.
    let before = client.harness.node.sent();
    let second = client.signed(2).await;
    client.sent(&second).await;
    until(|| times() >= before.len() + 2).await;
    let later = &client.harness.node.sent()[before.len()..];
    assert!(later.iter().all(|bytes| *bytes == second.bytes));
}

#[tokio::test]
async fn one_that_ran_out_of_compute_units_raises_the_limit_of_the_next() {
    let client = Client::start_sending(&[]).await;
    let limit = async || {
        let built = client
            .transaction(&client.body(&client.quote().await))
            .await;
        assert_eq!(built.status, 200, "{}", built.body);
        built.body["computeUnitLimit"].as_u64().expect("a limit")
    };
    let before = limit().await;
    let had = before + 20_000;
    let runs_out = |units: u64| {
        let why = "exceeded CUs meter at BPF instruction";
        vec![
            format!("Program {PROGRAM_ID} invoke [1]"),
            format!("Program {} invoke [2]", ids::PROGRAM_ID),
            format!(
                "Program {} consumed {units} of {units} compute units",
                ids::PROGRAM_ID
            ),
            format!("Program {} failed: {why}", ids::PROGRAM_ID),
            format!("Program {PROGRAM_ID} consumed {units} of {units} compute units"),
            format!("Program {PROGRAM_ID} failed: {why}"),
        ]
    };
    let error = "InstructionError(2, ProgramFailedToComplete)";
    // One whose sender allowed it less than it would be allowed here teaches nothing.
    let starved = client.signed(1).await;
    client.sent(&starved).await;
    let executed = starved.executed(runs_out(1_000), Some(error));
    client.harness.chain.execute(executed);
    client.until(&starved, "failed").await;
    assert_eq!(limit().await, before);

    let short = client.signed(2).await;
    client.sent(&short).await;
    client
        .harness
        .chain
        .execute(short.executed(runs_out(had), Some(error)));
    client.until(&short, "failed").await;
    assert!(limit().await > had, "{before}");
}

#[tokio::test]
async fn a_node_that_fails_costs_nothing_while_another_one_accepts_it() {
    let broken = RpcNode::holding([]).await.expect("a node");
    broken.fail_all(true);
    let client = Client::start_sending(&[&broken]).await;
    let swap = client.signed(1).await;
    assert_eq!(client.sent(&swap).await["acceptedBy"], json!(1));
    until(|| broken.count("sendTransaction") >= 2).await;
    assert_eq!(client.status(&swap).await["acceptedBy"], json!(1));
    broken.fail_all(false);
    until(|| broken.sent().contains(&swap.bytes)).await;
    client.harness.chain.execute(swap.succeeded());
    assert_eq!(
        client.until(&swap, "finalized").await["acceptedBy"],
        json!(2)
    );
}

#[tokio::test]
async fn what_a_fork_executed_that_is_left_behind_is_sent_again() {
    let client = Client::start_sending(&[]).await;
    let swap = client.signed(1).await;
    client.sent(&swap).await;
    let chain = &client.harness.chain;
    chain.hold_confirmations(true);
    chain.execute_aside(swap.succeeded());
    let stream = client.follow(&swap).await;
    client.until(&swap, "processed").await;
    chain.hold_confirmations(false);
    client.until(&swap, "sent").await;
    client.harness.chain.execute(swap.failed());
    let known = client.until(&swap, "failed").await;
    let error = &known["error"];
    assert_eq!(
        (&error["source"], &error["code"]),
        (&json!("guard"), &json!(6000))
    );
    assert_eq!(error["program"], json!(PROGRAM_ID.to_string()));
    assert!(
        error["message"]
            .as_str()
            .expect("words")
            .contains("fresh quote"),
        "{error}"
    );
    assert_eq!(
        (&known["spent"], &known["received"]),
        (&Value::Null, &Value::Null)
    );
    let last = statuses(stream).await.pop().expect("a status");
    assert_eq!(
        (&last["status"], &last["commitment"]),
        (&json!("failed"), &json!("finalized"))
    );
}

#[tokio::test]
async fn what_no_block_had_in_time_has_expired_and_is_sent_no_more() {
    let client = Client::start_sending(&[]).await;
    let swap = client.signed(1).await;
    client.sent(&swap).await;
    let known = client.until(&swap, "expired").await;
    assert!(client.harness.chain.slot() > swap.last_valid, "{known}");
    assert_eq!(known["slot"], Value::Null);
    let times = client.harness.node.sent().len();
    let second = client.signed(2).await;
    client.sent(&second).await;
    until(|| client.harness.node.sent().len() >= times + 2).await;
    let later = &client.harness.node.sent()[times..];
    assert!(later.iter().all(|bytes| *bytes == second.bytes));
    assert_eq!(client.sent(&swap).await["status"], json!("expired"));
}

#[tokio::test]
async fn a_stream_that_is_cut_loses_nothing_where_it_is_replayed() {
    let client = Client::start_sending(&[]).await;
    let swap = client.signed(1).await;
    client.sent(&swap).await;
    client.harness.chain.cut();
    client.harness.chain.execute(swap.succeeded());
    let known = client.until(&swap, "finalized").await;
    assert_eq!(known["received"], json!(RECEIVED));
    // It had landed before it was sent here.
    let other = client.signed(2).await;
    client.harness.chain.execute(other.succeeded());
    let third = client.signed(3).await;
    client.sent(&third).await;
    client.harness.chain.execute(third.succeeded());
    client.until(&third, "confirmed").await;
    assert_ne!(client.sent(&other).await["status"], json!("sent"));
    client.until(&other, "finalized").await;
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_by_name() {
    let client = Client::start_sending(&[]).await;
    let swap = client.signed(1).await;
    let edited = |edit: &dyn Fn(&mut VersionedTransaction)| {
        let mut transaction: VersionedTransaction =
            wincode::deserialize_exact(&swap.bytes).expect("a transaction");
        edit(&mut transaction);
        json!({ "transaction": BASE64.encode(wincode::serialize(&transaction).expect("bytes")) })
    };
    let unsigned = edited(&|transaction| transaction.signatures[0] = Signature::default());
    let tampered = edited(&|transaction| {
        let hash = solana_hash::Hash::new_from_array([5; 32]);
        transaction.message.set_recent_blockhash(hash);
    });
    let mut longer = swap.bytes.clone();
    longer.push(0);
    let longer = json!({ "transaction": BASE64.encode(longer) });
    for (body, code, words) in [
        (json!({}), "missing_field", "transaction"),
        (json!({ "transaction": "?" }), "invalid_field", "base64"),
        (
            json!({ "transaction": "" }),
            "invalid_field",
            "no transaction",
        ),
        (longer, "invalid_field", "no transaction"),
        (unsigned, "invalid_field", "no valid signature of"),
        (tampered, "invalid_field", "no valid signature of"),
        (
            json!({ "transaction": "", "more": 1 }),
            "unknown_field",
            "more",
        ),
    ] {
        let answer = client.send(&body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, code),
            "{}",
            answer.body
        );
        let detail = answer.body["detail"].as_str().expect("a detail");
        assert!(detail.contains(words), "{detail}");
    }
    assert_eq!(client.harness.node.sent(), [] as [Vec<u8>; 0]);
    let unknown = format!("/v1/transactions/{}", swap.signature);
    for path in [unknown.clone(), format!("{unknown}/stream")] {
        assert_eq!(client.get(&path).await.code(), "not_found");
    }
    assert_eq!(
        client.get("/v1/transactions/none").await.code(),
        "invalid_field"
    );
}

#[tokio::test]
async fn another_program_s_transaction_is_not_sent() {
    let client = Client::start_sending(&[]).await;
    let payer = keypair("client");
    let key = solana_signer::Signer::pubkey(&payer);
    let transfer = solana_system_interface::instruction::transfer(&key, &key, 1);
    let message = solana_message::Message::new(&[transfer], Some(&key));
    let message = solana_message::VersionedMessage::Legacy(message);
    let signed = VersionedTransaction::try_new(message, &[payer]).expect("one signer");
    let bytes = wincode::serialize(&signed).expect("bytes");
    let answer = client
        .send(&json!({ "transaction": BASE64.encode(bytes) }))
        .await;
    assert_eq!(answer.code(), "invalid_field");
    let detail = answer.body["detail"].as_str().expect("a detail");
    assert!(detail.contains("does not call the guard"), "{detail}");
}

#[tokio::test]
async fn a_stream_ends_in_order_when_the_service_stops() {
    let client = Client::start_sending(&[]).await;
    let swap = client.signed(1).await;
    client.sent(&swap).await;
    let stream = client.follow(&swap).await;
    client.harness.stop().await.expect("ends in order");
    let last = statuses(stream).await.pop().expect("an end");
    assert_eq!(last["code"], json!("stopping"));
}

#[tokio::test]
async fn a_swap_is_followed_over_a_socket_which_closes_after_the_last_status() {
    let client = Client::start_sending(&[]).await;
    let swap = client.signed(1).await;
    client.sent(&swap).await;
    let path = format!("/v1/transactions/{}/stream", swap.signature);
    let mut socket = client.socket(&path, &[]).await;
    let first = socket.event().await;
    assert_eq!(first["event"], "status");
    assert_eq!(first["data"]["status"], "sent");
    client.harness.chain.execute(swap.succeeded());
    let known = client.until(&swap, "finalized").await;
    let (last, close, reason) = socket.end().await;
    let last = last.expect("a last status");
    assert_eq!(last, json!({ "event": "status", "data": known }));
    assert_eq!((close, reason.as_str()), (1000, ""));
    let other = client.signed(2).await;
    client.sent(&other).await;
    let path = format!("/v1/transactions/{}/stream", other.signature);
    let socket = client.socket(&path, &[]).await;
    client.harness.stop().await.expect("ends in order");
    socket.ends_with("stopping", 1001).await;
}

//! Explanations: transactions that were built, that landed, and that are no transactions.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};
use sluice_testkit::names::keypair;
use solana_message::{Message, VersionedMessage};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_system_interface::instruction as system_instruction;
use solana_transaction::versioned::VersionedTransaction;

use crate::client::{AMOUNT, Answer, Client, wallet};

const PATH: &str = "/v1/transactions/explain";

impl Client {
    async fn explain(&self, body: &Value) -> Answer {
        self.post(PATH, body).await
    }

    /// What `/v1/swap/transaction` answers for the quote.
    async fn answered(&self) -> Value {
        let mut body = self.body(&self.quote().await);
        body["priorityFeeLamports"] = json!(9_999);
        let answer = self.transaction(&body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }
}

/// What a node answers for a transaction that landed.
fn landed(bytes: &[u8], error: Value, logs: &[String]) -> Value {
    json!({
        "slot": 77,
        "blockTime": 1_700_000_000,
        "transaction": [BASE64.encode(bytes), "base64"],
        "version": 0,
        "meta": {
            "err": error,
            "fee": 14_999,
            "computeUnitsConsumed": 31_000,
            "logMessages": logs,
            "loadedAddresses": { "writable": [], "readonly": [] },
        },
    })
}

#[tokio::test]
async fn a_transaction_that_is_built_is_explained_to_its_last_instruction() {
    let client = Client::start().await;
    client.enrich(1_000_000_000);
    let built = client.answered().await;
    let explained = client
        .explain(&json!({ "transaction": built["transaction"] }))
        .await;
    assert_eq!(explained.status, 200, "{}", explained.body);
    let explained = explained.body;
    assert_eq!(explained["isKnown"], json!(true), "{explained}");
    assert_eq!(explained["callsGuard"], json!(true));
    assert_eq!(explained["signature"], Value::Null);
    assert_eq!(explained["execution"], Value::Null);
    assert_eq!(explained["blockhash"], built["blockhash"]);
    assert_eq!(explained["size"], built["size"]);
    let signers = json!([{ "pubkey": wallet().to_string(), "hasSigned": false }]);
    assert_eq!(explained["signers"], signers);
    for field in ["baseFeeLamports", "priorityFeeLamports"] {
        assert_eq!(explained["costs"][field], built["costs"][field], "{field}");
    }
    assert_eq!(
        explained["costs"]["computeUnitLimit"],
        built["computeUnitLimit"]
    );

    let list = |answer: &Value| answer["instructions"].as_array().expect("a list").clone();
    let (steps, planned) = (list(&explained), list(&built));
    assert_eq!(steps.len(), planned.len());
    for (step, planned) in steps.iter().zip(&planned) {
        assert_eq!(step["program"], planned["program"], "{step}");
        assert_eq!(step["caution"], Value::Null, "{step}");
        let keys = |of: &Value| {
            let accounts = of["accounts"].as_array().expect("a list").iter();
            accounts
                .map(|account| account["pubkey"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(step), keys(planned), "{step}");
    }
    let swap = steps.iter().position(|step| step["name"] == "guardedSwap");
    let swap = swap.expect("a swap");
    let minimum = &built["quote"]["minimumOut"];
    let says = steps[swap]["says"].as_str().expect("words");
    let expected = format!(
        "swaps exactly {AMOUNT} of {} for at least {minimum} of",
        cpmm::ids::WRAPPED_SOL
    );
    assert!(says.starts_with(&expected), "{says}");
    let roles = |of: &Value| {
        let accounts = of["accounts"].as_array().expect("a list").iter();
        let roles = accounts.map(|account| account["role"].clone());
        roles.collect::<Vec<_>>()
    };
    assert_eq!(roles(&steps[swap]), roles(&planned[swap]));
    let spends = explained["costs"]["spends"].as_array().expect("a list");
    let spent = spends
        .iter()
        .find(|spend| spend["instruction"] == json!(swap));
    assert_eq!(spent.expect("it spends")["amount"], json!(AMOUNT));
}

#[tokio::test]
async fn a_landed_transaction_is_explained_by_its_signature_with_what_became_of_it() {
    let client = Client::start().await;
    client.enrich(1_000_000_000);
    let built = client.answered().await;
    let bytes = BASE64
        .decode(built["transaction"].as_str().expect("text"))
        .expect("base64");
    let unsigned: VersionedTransaction = wincode::deserialize_exact(&bytes).expect("a transaction");
    let signed = VersionedTransaction::try_new(unsigned.message, &[keypair("client")]);
    let signed = signed.expect("the wallet is the only signer");
    let bytes = wincode::serialize(&signed).expect("bytes");
    let signature = signed.signatures[0].to_string();
    let node = &client.harness.node;

    node.script("getTransaction", landed(&bytes, Value::Null, &[]));
    let explained = client
        .explain(&json!({ "signature": signature }))
        .await
        .body;
    assert_eq!(explained["signature"], json!(signature), "{explained}");
    assert_eq!(explained["signers"][0]["hasSigned"], json!(true));
    let execution = &explained["execution"];
    assert_eq!(execution["slot"], json!(77));
    assert_eq!(execution["feeLamports"], json!(14_999));
    assert_eq!(execution["computeUnits"], json!(31_000));
    assert_eq!(execution["error"], Value::Null);

    let guard = swap_guard_interface::PROGRAM_ID;
    let logs = [
        format!("Program {guard} invoke [1]"),
        format!("Program {guard} failed: custom program error: 0x1770"),
    ];
    let error = json!({ "InstructionError": [5, { "Custom": 6000 }] });
    node.script("getTransaction", landed(&bytes, error, &logs));
    let explained = client
        .explain(&json!({ "signature": signature }))
        .await
        .body;
    let error = &explained["execution"]["error"];
    assert_eq!(error["source"], json!("guard"), "{explained}");
    assert_eq!(error["name"], json!("SlippageExceeded"));
    assert_eq!(explained["execution"]["logs"], json!(logs));

    node.script("getTransaction", Value::Null);
    let unknown = client.explain(&json!({ "signature": signature })).await;
    assert_eq!(
        (unknown.status.as_u16(), unknown.code()),
        (404, "not_found")
    );
}

#[tokio::test]
async fn an_instruction_of_an_unknown_program_is_said_to_be_unknown() {
    let client = Client::start().await;
    let program = Pubkey::from([9; 32]);
    let mut instruction = system_instruction::transfer(&wallet(), &program, 1);
    instruction.program_id = program;
    instruction.accounts.clear();
    instruction.data = vec![1, 2];
    let message = Message::new(&[instruction], Some(&wallet()));
    let transaction = VersionedTransaction {
        signatures: vec![Signature::default()],
        message: VersionedMessage::Legacy(message),
    };
    let bytes = wincode::serialize(&transaction).expect("bytes");
    let explained = client
        .explain(&json!({ "transaction": BASE64.encode(bytes) }))
        .await
        .body;
    assert_eq!(explained["isKnown"], json!(false), "{explained}");
    assert_eq!(explained["callsGuard"], json!(false));
    let step = &explained["instructions"][0];
    assert_eq!(step["program"], json!(program.to_string()));
    for field in ["programName", "name"] {
        assert_eq!(step[field], Value::Null, "{field}");
    }
    assert!(step["caution"].is_string());
    assert_eq!(step["data"], json!("0102"));
}

#[tokio::test]
async fn what_cannot_be_explained_is_refused_by_the_field_at_fault() {
    let client = Client::start().await;
    for (body, code, named) in [
        (json!({}), "missing_field", "transaction"),
        (
            json!({ "transaction": "AA==", "signature": "1" }),
            "invalid_field",
            "signature",
        ),
        (
            json!({ "transaction": "no base64!" }),
            "invalid_field",
            "transaction",
        ),
        (
            json!({ "transaction": "AAAA" }),
            "invalid_field",
            "transaction",
        ),
        (
            json!({ "signature": "short" }),
            "invalid_field",
            "signature",
        ),
    ] {
        let answer = client.explain(&body).await;
        assert_eq!(answer.status.as_u16(), 400, "{body}: {}", answer.body);
        assert_eq!(answer.code(), code, "{body}: {}", answer.body);
        let detail = answer.body["detail"].as_str().expect("words");
        assert!(detail.starts_with(named), "{body}: {detail}");
    }
}

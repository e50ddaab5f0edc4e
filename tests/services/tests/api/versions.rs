//! Versions of transactions: version 1 where the cluster takes it, and what says so where it does not.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_testkit::names::keypair;
use sluice_transaction::Associated;
use solana_pubkey::{Pubkey, pubkey};
use solana_signer::Signer;
use solana_transaction::versioned::{Legacy, TransactionVersion, VersionedTransaction};

use crate::client::{AMOUNT, Client, wallet};

const FEATURE: Pubkey = pubkey!("txv1aq4pp281K9um3tnPgkfX8UqtFT6wcVW3hNezGLL");
const FEATURE_PROGRAM: Pubkey = pubkey!("Feature111111111111111111111111111111111111");

/// Ceiling of the priority fee, lamports.
const PRIORITY_FEE: u64 = 12_345;

impl Client {
    /// Gives the cluster the account of the feature: with the slot of its activation, or waiting for it.
    fn place_feature(&self, slot: Option<u64>) {
        let mut data = vec![u8::from(slot.is_some())];
        data.extend(slot.unwrap_or(0).to_le_bytes());
        self.harness.node.set(RawAccount {
            pubkey: FEATURE,
            owner: FEATURE_PROGRAM,
            lamports: 1,
            data: Bytes::from(data),
        });
    }

    async fn body_of_version(&self, version: Value) -> Value {
        let mut body = self.body(&self.quote().await);
        body["transactionVersion"] = version;
        body["priorityFeeLamports"] = json!(PRIORITY_FEE);
        body
    }

    /// The body of the largest swap: two pools that end in SOL for another wallet, another fee payer, and a wrapped SOL account
    /// that is there.
    pub async fn largest(&self) -> Value {
        let harness = &self.harness;
        let (sol, far) = (harness.sol_pool.state.mints, harness.far_pool.state.mints);
        for mint in [far.token_1, sol.token_0] {
            let account = Associated::of(&wallet(), &mint, &cpmm::ids::SPL_TOKEN).address;
            self.give(account, wallet(), mint, AMOUNT * 10, false);
        }
        let path = format!(
            "/v1/quote?inputMint={}&outputMint={}&amount={}&maxHops=2",
            far.token_1,
            sol.token_0,
            AMOUNT * 10
        );
        let answer = self.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let mut body = self.body(&answer.body["quote"]);
        body["receiver"] = json!(keypair("receiver").pubkey().to_string());
        body["feePayer"] = json!(keypair("fee payer").pubkey().to_string());
        body
    }
}

fn version(answer: &Value) -> TransactionVersion {
    let bytes = BASE64.decode(answer["transaction"].as_str().expect("a transaction"));
    let transaction: VersionedTransaction =
        wincode::deserialize_exact(&bytes.expect("base64")).expect("a transaction");
    transaction.version()
}

#[tokio::test]
async fn version_1_is_refused_until_the_cluster_takes_it() {
    let client = Client::start().await;
    let body = client.body_of_version(json!(1)).await;
    client.place_feature(None);
    for _ in 0..3 {
        let answer = client.transaction(&body).await;
        let got = (answer.status.as_u16(), answer.code());
        let expected = (422, "transaction_version_unsupported");
        assert_eq!(got, expected, "{}", answer.body);
        assert_eq!(answer.body["field"], "transactionVersion");
    }
    let instruction = client.post("/v1/swap/instruction", &body).await;
    assert_eq!(instruction.status, 200, "{}", instruction.body);
}

#[tokio::test]
async fn each_version_is_built_as_asked() {
    let client = Client::start().await;
    client.place_feature(Some(7));
    let built = async |version: Value| {
        let body = client.body_of_version(version).await;
        let answer = client.transaction(&body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    };
    let answer = built(json!(1)).await;
    assert_eq!(version(&answer), TransactionVersion::Number(1));
    assert_eq!(answer["costs"]["priorityFeeLamports"], json!(PRIORITY_FEE));
    let names = answer["instructions"].as_array().expect("a list").iter();
    let mut names = names.map(|instruction| instruction["name"].as_str());
    assert!(names.all(|name| name.is_some_and(|name| !name.starts_with("setComputeUnit"))));
    let zero = built(json!(0)).await;
    assert_eq!(version(&zero), TransactionVersion::Number(0));
    let legacy = built(json!("legacy")).await;
    assert_eq!(version(&legacy), TransactionVersion::Legacy(Legacy::Legacy));
    // An active feature stays active: after the first request no more is read than for another version.
    let body = client.body_of_version(json!(1)).await;
    client.harness.node.forget_calls();
    assert_eq!(client.transaction(&body).await.status, 200);
    assert_eq!(client.harness.node.count("getMultipleAccounts"), 1);
}

#[tokio::test]
async fn what_is_too_large_fits_version_1_where_the_cluster_takes_it() {
    for (slot, helps) in [(None, false), (Some(7), true)] {
        let client = Client::start().await;
        client.place_feature(slot);
        let mut body = client.largest().await;
        let answer = client.transaction(&body).await;
        let got = (answer.status.as_u16(), answer.code());
        assert_eq!(got, (422, "transaction_too_large"), "{}", answer.body);
        let remedies = answer.body["remedies"].as_array().expect("a list");
        assert!(remedies.contains(&json!("feePayer")), "{}", answer.body);
        let named = remedies.contains(&json!("transactionVersion"));
        assert_eq!(named, helps, "{}", answer.body);
        body["transactionVersion"] = json!(1);
        assert_eq!(client.transaction(&body).await.status == 200, helps);
    }
}

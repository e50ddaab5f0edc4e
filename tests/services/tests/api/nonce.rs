//! Nonce accounts in place of recent blockhashes: what is built with one, and which are refused.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_testkit::names::{address, keypair};
use solana_hash::Hash;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use crate::client::{Client, wallet};

/// What the nonce holds.
const VALUE: [u8; 32] = [51; 32];

fn nonce_account() -> Pubkey {
    address("nonce account")
}

/// A nonce account of this version, state and authority.
fn data(version: u32, state: u32, authority: Pubkey) -> Vec<u8> {
    let mut data = [version.to_le_bytes(), state.to_le_bytes()].concat();
    data.extend(authority.to_bytes());
    data.extend(VALUE);
    data.extend(5_000u64.to_le_bytes());
    data
}

impl Client {
    fn place_nonce(&self, owner: Pubkey, data: Vec<u8>) {
        self.harness.node.set(RawAccount {
            pubkey: nonce_account(),
            owner,
            lamports: 1_447_680,
            data: data.into(),
        });
    }

    async fn body_with_nonce(&self) -> Value {
        let mut body = self.body(&self.quote().await);
        body["nonceAccount"] = json!(nonce_account().to_string());
        body
    }
}

fn parsed(answer: &Value) -> VersionedTransaction {
    let bytes = BASE64.decode(answer["transaction"].as_str().expect("a transaction"));
    wincode::deserialize_exact(&bytes.expect("base64")).expect("a transaction")
}

#[tokio::test]
async fn a_transaction_carries_the_nonce_and_has_no_last_height() {
    let client = Client::start().await;
    let payer = keypair("fee payer").pubkey();
    let mut body = client.body_with_nonce().await;
    for (fee_payer, authority) in [
        (None, wallet()),
        (Some(payer), wallet()),
        (Some(payer), payer),
    ] {
        client.place_nonce(Pubkey::default(), data(1, 1, authority));
        if let Some(payer) = fee_payer {
            body["feePayer"] = json!(payer.to_string());
        }
        let answer = client.transaction(&body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let value = Hash::new_from_array(VALUE);
        assert_eq!(answer.body["blockhash"], json!(value.to_string()));
        assert_eq!(answer.body["lastValidBlockHeight"], Value::Null);
        let first = &answer.body["instructions"][0];
        assert_eq!(first["name"], "advanceNonce");
        let signer = &first["accounts"][2];
        assert_eq!(signer["pubkey"], json!(authority.to_string()));
        let transaction = parsed(&answer.body);
        assert_eq!(*transaction.message.recent_blockhash(), value);
        let check = json!({ "transaction": answer.body["transaction"], "request": body });
        let checked = client.post("/v1/swap/check", &check).await;
        assert_eq!(checked.body["equal"], json!(true), "{}", checked.body);
    }
    let instruction = client.post("/v1/swap/instruction", &body).await;
    assert_eq!(instruction.status, 200, "{}", instruction.body);
    assert!(instruction.body["lastValidBlockHeight"].is_u64());
}

#[tokio::test]
async fn an_account_without_a_value_for_these_signers_is_refused() {
    let client = Client::start().await;
    let body = client.body_with_nonce().await;
    let refused = async || {
        let answer = client.transaction(&body).await;
        let got = (answer.status.as_u16(), answer.code());
        assert_eq!(got, (422, "nonce_account_unusable"), "{}", answer.body);
        assert_eq!(answer.body["field"], "nonceAccount");
        let account = nonce_account().to_string();
        assert_eq!(answer.body["account"], json!(account));
        answer.body["detail"].as_str().expect("a text").to_owned()
    };
    assert!(refused().await.contains("is no nonce account"));
    let stranger = address("stranger");
    for (owner, data, word) in [
        (stranger, data(1, 1, wallet()), "is no nonce account"),
        (Pubkey::default(), Vec::new(), "is no nonce account"),
        (Pubkey::default(), data(1, 0, wallet()), "initialize it"),
        (
            Pubkey::default(),
            data(0, 1, wallet()),
            "UpgradeNonceAccount",
        ),
        (Pubkey::default(), data(1, 1, stranger), "is advanced by"),
    ] {
        client.place_nonce(owner, data);
        let detail = refused().await;
        assert!(detail.contains(word), "{detail}");
    }
    let mut body = body.clone();
    body["nonceAccount"] = json!("x");
    assert_eq!(client.transaction(&body).await.code(), "invalid_field");
}

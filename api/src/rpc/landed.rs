//! Landed transaction: one that the node knows by its signature, with what became of it.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use solana_pubkey::Pubkey;
use solana_rpc_client_api::request::RpcRequest;
use solana_signature::Signature;

use super::{
    call::{Node, malformed},
    simulation::words,
};
use crate::error::ApiError;

/// The newest wire format that is read; a node answers older ones as well.
const NEWEST_VERSION: u8 = 1;

/// A transaction that a block has.
#[derive(Clone, Debug)]
pub struct Landed {
    /// Its wire bytes.
    pub bytes: Vec<u8>,
    /// The slot that executed it.
    pub slot: u64,
    /// When, unix time in seconds, where the node knows.
    pub block_time: Option<i64>,
    /// Why it failed, in the chain's words; `None` where it did not.
    pub error: Option<String>,
    /// What it was charged, lamports.
    pub fee: u64,
    /// Compute units that it used, where the node says.
    pub units: Option<u64>,
    /// What its programs logged.
    pub logs: Vec<String>,
    /// Addresses that it took from lookup tables: those that it may write, then the others.
    pub looked_up: Vec<Pubkey>,
}

/// The node's answer, as far as it is used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    slot: u64,
    block_time: Option<i64>,
    /// The bytes, and `base64`.
    transaction: (String, String),
    meta: Option<Meta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    err: Option<Value>,
    fee: u64,
    compute_units_consumed: Option<u64>,
    log_messages: Option<Vec<String>>,
    loaded_addresses: Option<LoadedAddresses>,
}

#[derive(Default, Deserialize)]
struct LoadedAddresses {
    writable: Vec<String>,
    readonly: Vec<String>,
}

/// The transaction of this signature, where a block that a supermajority voted for has it.
pub(super) async fn landed(node: &Node, signature: &Signature) -> Result<Option<Landed>, ApiError> {
    let params = json!([
        signature.to_string(),
        {
            "encoding": "base64",
            "commitment": "confirmed",
            "maxSupportedTransactionVersion": NEWEST_VERSION,
        },
    ]);
    let call = node.call("getTransaction", async |client| {
        client
            .send::<Option<Answer>>(RpcRequest::GetTransaction, params)
            .await
    });
    call.await?.map(Landed::try_from).transpose()
}

impl TryFrom<Answer> for Landed {
    type Error = ApiError;

    fn try_from(answer: Answer) -> Result<Self, ApiError> {
        let (text, _) = &answer.transaction;
        let bytes = BASE64_STANDARD
            .decode(text)
            .map_err(|_| malformed("a transaction that is no base64"))?;
        let meta = answer
            .meta
            .ok_or_else(|| malformed("a transaction without its outcome"))?;
        let LoadedAddresses { writable, readonly } = meta.loaded_addresses.unwrap_or_default();
        let looked_up = writable.iter().chain(&readonly).map(|text| text.parse());
        Ok(Self {
            bytes,
            slot: answer.slot,
            block_time: answer.block_time,
            error: meta.err.as_ref().map(words),
            fee: meta.fee,
            units: meta.compute_units_consumed,
            logs: meta.log_messages.unwrap_or_default(),
            looked_up: looked_up
                .collect::<Result<_, _>>()
                .map_err(|_| malformed("a looked-up address that is none"))?,
        })
    }
}

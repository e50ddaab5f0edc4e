//! Calls of JSON-RPC taken apart, and accounts and errors as nodes write them.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use solana_pubkey::Pubkey;

/// Error code of a node that has not reached the slot asked for.
const MIN_CONTEXT_SLOT_NOT_REACHED: i64 = -32016;

/// Error code for a method that is not there.
const METHOD_NOT_FOUND: i64 = -32601;

/// A call that a snapshot consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `getProgramAccounts`.
    ProgramAccounts {
        /// Owner program.
        owner: Pubkey,
        /// Conditions on the data; all must hold.
        conditions: Vec<Condition>,
        /// How to read.
        reading: Reading,
    },
    /// `getMultipleAccounts`.
    MultipleAccounts {
        /// The accounts.
        keys: Vec<Pubkey>,
        /// How to read.
        reading: Reading,
    },
    /// `getSlot`.
    Slot {
        /// How to read.
        reading: Reading,
    },
}

impl Call {
    /// How to read, whatever is read.
    #[must_use]
    pub fn reading(&self) -> Reading {
        match self {
            Self::ProgramAccounts { reading, .. }
            | Self::MultipleAccounts { reading, .. }
            | Self::Slot { reading } => *reading,
        }
    }
}

/// A condition on the data of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It is this many bytes long.
    Size(u64),
    /// It holds these bytes at this offset.
    Bytes(u64, Vec<u8>),
}

/// At which state to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whether an unconfirmed slot is good enough.
    pub processed: bool,
    /// The oldest slot that is good enough.
    pub min_slot: u64,
    /// Part of the data to return: offset and length.
    pub slice: Option<(usize, usize)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireConfig {
    commitment: Option<String>,
    min_context_slot: Option<u64>,
    data_slice: Option<WireSlice>,
    #[serde(default)]
    filters: Vec<Value>,
}

#[derive(Deserialize)]
struct WireSlice {
    offset: usize,
    length: usize,
}

impl WireConfig {
    fn reading(&self) -> Reading {
        Reading {
            processed: self.commitment.as_deref() == Some("processed"),
            min_slot: self.min_context_slot.unwrap_or(0),
            slice: self.data_slice.as_ref().map(|s| (s.offset, s.length)),
        }
    }
}

/// Takes a call apart.
///
/// # Errors
/// What is not understood. A double that guessed would let a wrong call pass.
pub fn parse(method: &str, params: &Value) -> Result<Call, String> {
    let config = |index: usize| -> Result<WireConfig, String> {
        let value = params.get(index).cloned().unwrap_or_else(|| json!({}));
        serde_json::from_value(value).map_err(|error| format!("{method}: {error}"))
    };
    match method {
        "getProgramAccounts" => {
            let config = config(1)?;
            let conditions = config.filters.iter().map(condition);
            Ok(Call::ProgramAccounts {
                owner: key(&params[0])?,
                conditions: conditions.collect::<Result<_, _>>()?,
                reading: config.reading(),
            })
        }
        "getMultipleAccounts" => {
            let keys = params[0].as_array().ok_or("no list of keys")?;
            Ok(Call::MultipleAccounts {
                keys: keys.iter().map(key).collect::<Result<_, _>>()?,
                reading: config(1)?.reading(),
            })
        }
        "getSlot" => Ok(Call::Slot {
            reading: config(0)?.reading(),
        }),
        other => Err(format!("{other} is not part of a snapshot")),
    }
}

/// A transaction that is sent, and its signature: only as the API sends them, as they are and once.
///
/// # Errors
/// As [`parse`].
pub fn sent(params: &Value) -> Result<(Vec<u8>, String), String> {
    /// Length of a signature; before the first one stands how many there are, in one byte.
    const SIGNATURE: usize = 64;
    let options = json!({"encoding": "base64", "skipPreflight": true, "maxRetries": 0});
    if params[1] != options {
        return Err(format!("sendTransaction with {}", params[1]));
    }
    let text = params[0].as_str().ok_or("a transaction is no string")?;
    let decoded = BASE64_STANDARD.decode(text);
    let bytes = decoded.map_err(|error| format!("a transaction: {error}"))?;
    let signature = bytes.get(1..=SIGNATURE).ok_or("a transaction is short")?;
    let signature = bs58::encode(signature).into_string();
    Ok((bytes, signature))
}

fn key(value: &Value) -> Result<Pubkey, String> {
    let text = value.as_str().ok_or("a key is no string")?;
    text.parse().map_err(|error| format!("{text}: {error}"))
}

fn condition(filter: &Value) -> Result<Condition, String> {
    if let Some(size) = filter["dataSize"].as_u64() {
        return Ok(Condition::Size(size));
    }
    let memcmp = &filter["memcmp"];
    let offset = memcmp["offset"].as_u64().ok_or("an unknown filter")?;
    let bytes = match (&memcmp["bytes"], memcmp["encoding"].as_str()) {
        (Value::String(text), Some("base64")) => BASE64_STANDARD.decode(text).ok(),
        (Value::String(text), _) => bs58::decode(text).into_vec().ok(),
        (Value::Array(bytes), _) => bytes
            .iter()
            .map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()))
            .collect(),
        _ => None,
    };
    Ok(Condition::Bytes(offset, bytes.ok_or("unreadable bytes")?))
}

/// An account as nodes write it. The data is plain base64 whatever encoding was asked for: answers name their encoding.
#[must_use]
pub fn account(owner: &Pubkey, lamports: u64, data: &[u8], reading: Reading) -> Value {
    let part = match reading.slice {
        None => data,
        Some((offset, length)) => {
            let rest = data.get(offset..).unwrap_or_default();
            &rest[..length.min(rest.len())]
        }
    };
    json!({
        "lamports": lamports,
        "data": [BASE64_STANDARD.encode(part), "base64"],
        "owner": owner.to_string(),
        "executable": false,
        "rentEpoch": u64::MAX,
        "space": data.len(),
    })
}

/// The answer to a call that went well, true for `slot`.
#[must_use]
pub fn success(id: &Value, slot: u64, value: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"context": {"slot": slot}, "value": value}})
}

/// The answer of a node that is at `slot`, which is not enough.
#[must_use]
pub fn not_reached(id: &Value, slot: u64) -> Value {
    let text = "Minimum context slot has not been reached";
    refusal(
        id,
        MIN_CONTEXT_SLOT_NOT_REACHED,
        text,
        json!({"contextSlot": slot}),
    )
}

/// The answer to a call that the double does not know.
#[must_use]
pub fn unknown(id: &Value, what: &str) -> Value {
    refusal(id, METHOD_NOT_FOUND, what, Value::Null)
}

/// A refusal with this code and text.
#[must_use]
pub fn refusal(id: &Value, code: i64, text: &str, data: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text, "data": data}})
}

//! What happened, in the words that messages and chain have in common (pure).

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use cpmm::ids;
use serde_json::Value;
use sluice_localnet::receiver::Message;

/// Where a token account has its amount, bytes; a mint is shorter than that.
const TOKEN_AMOUNT: std::ops::Range<usize> = 64..72;

/// Length of a token account without extensions, bytes: a mint has fewer.
const TOKEN_ACCOUNT_BYTES: usize = 165;

/// Something that happened in a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fact {
    pub(super) slot: u64,
    pub(super) what: What,
}

/// What it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// A transaction was executed.
    Transaction { signature: String },
    /// The exchange emitted an event in a transaction: its bytes in base 64.
    ProgramEvent { signature: String, data: String },
    /// An account was written. A slot has one for each account, how it was after the last write: that is what is promised, since
    /// a slot that is replayed shows no other write.
    AccountChange {
        account: String,
        /// Signature of the transaction that wrote it last.
        writer: Option<String>,
        lamports: u64,
        /// What it holds, where it is a token account, smallest units.
        tokens: Option<u64>,
    },
    /// An account is said to have been taken from the exchange, which nobody does here.
    Taken { account: String, by: String },
}

impl Fact {
    /// What a message tells; `None` for one that tells of no event, and for the state of an account after a gap, which is no
    /// change.
    pub(super) fn told_by(message: &Message) -> Option<Self> {
        let data = message.body.get("data")?;
        let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
        let what = match message.kind() {
            "transaction" => What::Transaction {
                signature: text("signature")?,
            },
            "programEvent" => What::ProgramEvent {
                signature: text("signature")?,
                data: text("data")?,
            },
            "accountChange" if text("origin").as_deref() == Some("transaction") => What::Taken {
                account: text("pubkey")?,
                by: text("writtenBy")?,
            },
            "accountChange" if data.get("origin").is_none() => What::AccountChange {
                account: text("pubkey")?,
                writer: text("writtenBy"),
                lamports: data.get("lamports").and_then(Value::as_u64)?,
                tokens: tokens(data),
            },
            _ => return None,
        };
        let slot = message.body.get("slot").and_then(Value::as_u64)?;
        Some(Self { slot, what })
    }

    pub(super) const fn is_account_change(&self) -> bool {
        matches!(self.what, What::AccountChange { .. })
    }
}

/// What the account of an `accountChange` holds, where it is a token account.
fn tokens(data: &Value) -> Option<u64> {
    let owner = data.get("owner").and_then(Value::as_str)?;
    let is_token = [ids::SPL_TOKEN, ids::TOKEN_2022].map(|program| program.to_string());
    let bytes = BASE64.decode(data.get("data").and_then(Value::as_str)?);
    let bytes = bytes.ok()?;
    if !is_token.iter().any(|program| program == owner) || bytes.len() < TOKEN_ACCOUNT_BYTES {
        return None;
    }
    let amount = bytes.get(TOKEN_AMOUNT)?.try_into().ok()?;
    Some(u64::from_le_bytes(amount))
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}: ", self.slot)?;
        match &self.what {
            What::Transaction { signature } => write!(f, "transaction {signature}"),
            What::ProgramEvent { signature, data } => write!(f, "event of {signature}: {data}"),
            What::Taken { account, by } => write!(f, "account {account} taken by {by}"),
            What::AccountChange {
                account,
                writer,
                lamports,
                tokens,
            } => {
                let writer = writer.as_deref().unwrap_or("nobody");
                write!(
                    f,
                    "account {account} with {lamports} lamports, written by {writer}"
                )?;
                tokens.map_or(Ok(()), |tokens| write!(f, ", with {tokens} tokens"))
            }
        }
    }
}

//! Simulation: what the node says that a transaction would do in its newest state.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use solana_rpc_client_api::{request::RpcRequest, response::Response};

use super::call::{Node, is_behind, malformed, until_reached};
use crate::error::ApiError;

/// What a transaction would do.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The slot of the state.
    pub slot: u64,
    /// Why it fails, in the chain's words; `None` where it succeeds.
    pub error: Option<String>,
    /// The instruction that fails.
    pub instruction: Option<usize>,
    /// What its programs logged.
    pub logs: Vec<String>,
    /// Compute units that it uses.
    pub units: u64,
    /// Bytes of accounts that it loads, where the node says it.
    pub loaded_bytes: Option<u32>,
    /// Balances before and after, where the node says them.
    pub balances: Option<Balances>,
}

/// Balances of a transaction's accounts before and after it.
#[derive(Clone, Debug)]
pub struct Balances {
    /// Lamports, by the account's position.
    pub lamports: Vec<(u64, u64)>,
    /// Tokens before.
    pub tokens_before: Vec<TokenBalance>,
    /// Tokens after.
    pub tokens_after: Vec<TokenBalance>,
}

/// Tokens in one account.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenBalance {
    /// The account's position.
    pub account_index: usize,
    /// Its mint.
    pub mint: String,
    /// The wallet that owns it.
    pub owner: String,
    #[serde(rename = "uiTokenAmount")]
    amount: TokenAmount,
}

#[derive(Clone, Debug, Deserialize)]
struct TokenAmount {
    amount: String,
}

impl TokenBalance {
    /// Smallest units; 0 where the node writes no number.
    #[must_use]
    pub fn amount(&self) -> u64 {
        self.amount.amount.parse().unwrap_or(0)
    }
}

/// The node's answer, as far as it is used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    err: Option<Value>,
    logs: Option<Vec<String>>,
    units_consumed: Option<u64>,
    loaded_accounts_data_size: Option<u32>,
    pre_balances: Option<Vec<u64>>,
    post_balances: Option<Vec<u64>>,
    pre_token_balances: Option<Vec<TokenBalance>>,
    post_token_balances: Option<Vec<TokenBalance>>,
}

impl Answer {
    fn balances(&mut self) -> Option<Balances> {
        let before = self.pre_balances.take()?;
        let after = self.post_balances.take()?;
        (before.len() == after.len()).then(|| Balances {
            lamports: before.into_iter().zip(after).collect(),
            tokens_before: self.pre_token_balances.take().unwrap_or_default(),
            tokens_after: self.post_token_balances.take().unwrap_or_default(),
        })
    }
}

/// Has the node execute these bytes as they are, but for the signatures, which are not there yet.
pub(super) async fn simulate(
    node: &Node,
    transaction: &[u8],
    least_slot: u64,
) -> Result<Simulation, ApiError> {
    let params = json!([
        BASE64_STANDARD.encode(transaction),
        {
            "encoding": "base64",
            "commitment": "processed",
            "sigVerify": false,
            "replaceRecentBlockhash": false,
            "minContextSlot": least_slot,
        },
    ]);
    let once = || {
        node.call("simulateTransaction", async |client| {
            let answer = client.send(RpcRequest::SimulateTransaction, params.clone());
            match answer.await {
                Err(error) if is_behind(&error) => Ok(None),
                answer => answer.map(Some),
            }
        })
    };
    let answer: Response<Answer> = until_reached(node.deadline, once).await?;
    let (slot, mut answer) = (answer.context.slot, answer.value);
    let balances = answer.balances();
    let instruction = answer.err.as_ref().and_then(failed_instruction);
    let units = answer.units_consumed;
    Ok(Simulation {
        slot,
        instruction,
        error: answer.err.as_ref().map(words),
        logs: answer.logs.unwrap_or_default(),
        units: units.ok_or_else(|| malformed("a simulation without compute units"))?,
        loaded_bytes: answer.loaded_accounts_data_size,
        balances,
    })
}

/// The position in `{"InstructionError": [2, …]}`.
fn failed_instruction(error: &Value) -> Option<usize> {
    let index = error.get("InstructionError")?.get(0)?.as_u64()?;
    usize::try_from(index).ok()
}

/// The name of an error, such as `BlockhashNotFound`, or all that is said of it.
pub(super) fn words(error: &Value) -> String {
    match error {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_as_nodes_write_them() {
        let custom = json!({ "InstructionError": [2, { "Custom": 6005 }] });
        assert_eq!(failed_instruction(&custom), Some(2));
        let named = json!({ "InstructionError": [0, "InvalidArgument"] });
        assert_eq!(failed_instruction(&named), Some(0));
        let rent = json!({ "InsufficientFundsForRent": { "account_index": 1 } });
        assert_eq!(failed_instruction(&rent), None);
        assert!(words(&rent).contains("InsufficientFundsForRent"));
        let plain = json!("BlockhashNotFound");
        assert_eq!(failed_instruction(&plain), None);
        assert_eq!(words(&plain), "BlockhashNotFound");
    }
}

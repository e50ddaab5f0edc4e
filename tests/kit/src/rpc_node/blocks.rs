//! Ledger of an RPC node: blocks as `getBlock` writes them, from the updates that the stream would send.
//!
//! It stands for the ledger of a node that indexers read what they missed from. It is stricter than one: a call that
//! leaves any part of its configuration to the node's defaults is not understood, a block has no account writes and
//! only the transactions of the slot, and a slot that the node lost is refused with the very words of a skipped one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sluice_geyser::{
    BlockMeta, Body, InnerInstruction, Instruction, TokenBalance, TransactionUpdate, Update,
};

/// Widest range of `getBlocks` that is answered; public nodes take 500,000 slots, many providers far fewer.
const MOST_LISTED: u64 = 1_000;

/// Highest version of the transactions of this ledger, but of blocks that are unreadable.
const VERSION: u64 = 0;

/// The blocks of a node.
#[derive(Debug, Default)]
pub struct BlockLedger {
    blocks: BTreeMap<u64, Value>,
    /// Slots whose blocks have transactions of a version that no client asks for.
    unreadable: BTreeSet<u64>,
    first: u64,
    confirmed: u64,
    finalized: u64,
}

/// What a call comes to: a result, or the code and text of an error.
pub(super) type Answered = Result<Value, (i64, String)>;

impl BlockLedger {
    /// Adds the confirmed block of a slot: its metadata and transactions are among these updates.
    ///
    /// # Panics
    /// When there is no block metadata among them.
    pub fn add(&mut self, updates: impl IntoIterator<Item = Update>) {
        let (mut meta, mut transactions) = (None, BTreeMap::new());
        for update in updates {
            match update.body {
                Body::BlockMeta(block) => meta = Some(block),
                Body::Transaction(one) => {
                    transactions.insert(one.index, one);
                }
                Body::Account(_) | Body::Slot(_) => {}
            }
        }
        let meta = meta.expect("a block has its metadata");
        self.confirmed = self.confirmed.max(meta.slot);
        self.blocks
            .insert(meta.slot, block(&meta, transactions.into_values()));
    }

    /// Loses the block of a slot, as nodes do that jump to a snapshot.
    pub fn lose(&mut self, slot: u64) {
        self.blocks.remove(&slot);
    }

    /// Gives the block of a slot a transaction of a version that no client asks for.
    pub fn make_unreadable(&mut self, slot: u64) {
        self.unreadable.insert(slot);
    }

    /// Cleans up what is before this slot.
    pub fn clean_up_before(&mut self, slot: u64) {
        self.first = slot;
        self.blocks = self.blocks.split_off(&slot);
    }

    /// Has confirmed this slot, with a block or without.
    pub fn confirm(&mut self, slot: u64) {
        self.confirmed = slot;
    }

    /// Has finalized this slot.
    pub fn finalize(&mut self, slot: u64) {
        self.finalized = slot;
    }

    /// The answer to a call; `None` to one about something else, or while there is no block.
    ///
    /// # Errors
    /// What is not understood of a call about blocks.
    pub(super) fn answer(&self, method: &str, params: &Value) -> Result<Option<Answered>, String> {
        if self.blocks.is_empty() && self.confirmed == 0 {
            return Ok(None);
        }
        let number = |index: usize| {
            let number = params[index].as_u64();
            number.ok_or_else(|| format!("{method}: parameter {index} is no slot"))
        };
        let commitment = |index: usize| match params[index]["commitment"].as_str() {
            Some("confirmed") => Ok(self.confirmed),
            Some("finalized") => Ok(self.finalized),
            other => Err(format!("{method} at {other:?}")),
        };
        Ok(Some(match method {
            "getSlot" => Ok(commitment(0)?.into()),
            "getFirstAvailableBlock" => Ok(self
                .blocks
                .keys()
                .next()
                .copied()
                .unwrap_or(self.first)
                .into()),
            "getBlocks" => {
                let (first, last) = (number(0)?, number(1)?.min(commitment(2)?));
                if number(1)?.saturating_sub(first) >= MOST_LISTED {
                    return Ok(Some(Err((-32_602, "Slot range too large".to_owned()))));
                }
                let slots = self.blocks.range(first..last.max(first).saturating_add(1));
                Ok(slots
                    .map(|(slot, _)| *slot)
                    .filter(|slot| *slot <= last)
                    .collect())
            }
            "getBlock" => {
                require_configuration(&params[1])?;
                self.block(number(0)?, commitment(1)?)
            }
            _ => return Ok(None),
        }))
    }

    fn block(&self, slot: u64, newest: u64) -> Answered {
        if slot > newest {
            return Err((-32_004, format!("Block not available for slot {slot}")));
        }
        if slot < self.first {
            let text = format!(
                "Block {slot} cleaned up, does not exist on node. First available block: {}",
                self.first
            );
            return Err((-32_001, text));
        }
        if self.unreadable.contains(&slot) {
            let text = "Transaction version (9) is not supported by the requesting client. Please try the request again \
                        with the following configuration parameter: \"maxSupportedTransactionVersion\": 9";
            return Err((-32_015, text.to_owned()));
        }
        self.blocks.get(&slot).cloned().ok_or_else(|| {
            let text = format!(
                "Slot {slot} was skipped, or missing due to ledger jump to recent snapshot"
            );
            (-32_007, text)
        })
    }
}

/// Every part of the configuration must be there: a node's defaults are base58 legacy transactions with rewards.
fn require_configuration(config: &Value) -> Result<(), String> {
    let right = config["encoding"] == "json"
        && config["transactionDetails"] == "full"
        && config["rewards"] == false
        && config["maxSupportedTransactionVersion"].is_u64();
    right
        .then_some(())
        .ok_or_else(|| format!("getBlock under {config}"))
}

fn block(meta: &BlockMeta, transactions: impl Iterator<Item = Box<TransactionUpdate>>) -> Value {
    let transactions: Vec<_> = transactions.map(|one| transaction(&one)).collect();
    json!({
        "blockHeight": meta.block_height,
        "blockTime": meta.block_time,
        "blockhash": meta.blockhash,
        "parentSlot": meta.parent_slot,
        "previousBlockhash": meta.parent_blockhash,
        "transactions": transactions,
    })
}

fn transaction(one: &TransactionUpdate) -> Value {
    assert!(one.error.is_none(), "only texts of errors are known here");
    let inner: Vec<_> = one
        .inner_instructions
        .iter()
        .map(|(index, inner)| {
            let inner: Vec<_> = inner.iter().map(inner_instruction).collect();
            json!({ "index": index, "instructions": inner })
        })
        .collect();
    let keys: Vec<_> = one.account_keys.iter().map(ToString::to_string).collect();
    let instructions: Vec<_> = one.instructions.iter().map(instruction).collect();
    json!({
        "meta": {
            "computeUnitsConsumed": one.compute_units,
            "err": null,
            "fee": one.fee,
            "innerInstructions": inner,
            "loadedAddresses": { "readonly": [], "writable": [] },
            "logMessages": (!one.logs_missing).then_some(&one.log_messages),
            "postBalances": one.post_balances,
            "postTokenBalances": token_balances(&one.post_token_balances),
            "preBalances": one.pre_balances,
            "preTokenBalances": token_balances(&one.pre_token_balances),
            "rewards": null,
            "status": { "Ok": null },
        },
        "transaction": {
            "message": {
                "accountKeys": keys,
                "addressTableLookups": [],
                "header": {
                    "numReadonlySignedAccounts": 0,
                    "numReadonlyUnsignedAccounts": 1,
                    "numRequiredSignatures": 1,
                },
                "instructions": instructions,
                "recentBlockhash": "11111111111111111111111111111111",
            },
            "signatures": [one.signature.to_string()],
        },
        "version": VERSION,
    })
}

fn token_balances(balances: &[TokenBalance]) -> Vec<Value> {
    let balance = |one: &TokenBalance| {
        let shown: Option<f64> = one.shown_amount.parse().ok();
        json!({
            "accountIndex": one.account_index,
            "mint": one.mint.to_string(),
            "owner": one.owner.map(|owner| owner.to_string()),
            "programId": one.program.map(|program| program.to_string()),
            "uiTokenAmount": {
                "amount": one.amount.to_string(),
                "decimals": one.decimals,
                "uiAmount": shown.filter(|shown| *shown > 0.0),
                "uiAmountString": one.shown_amount,
            },
        })
    };
    balances.iter().map(balance).collect()
}

fn instruction(one: &Instruction) -> Value {
    json!({
        "accounts": one.accounts,
        "data": bs58::encode(&one.data).into_string(),
        "programIdIndex": one.program_index,
        "stackHeight": 1,
    })
}

fn inner_instruction(one: &InnerInstruction) -> Value {
    json!({
        "accounts": one.accounts,
        "data": bs58::encode(&one.data).into_string(),
        "programIdIndex": one.program_index,
        "stackHeight": one.stack_height,
    })
}

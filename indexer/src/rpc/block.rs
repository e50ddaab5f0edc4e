//! Block by RPC: converts the JSON of `getBlock` into the updates that the stream would have sent (pure).
//!
//! Expected is encoding `json` with full transactions. What follows for a message's id, matching and payload is the
//! same as of the streamed block: position in the block, order of account keys, text of errors, logs that are missing.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use sluice_geyser::{BlockMeta, InnerInstruction, Instruction, TokenBalance, TransactionUpdate};
use solana_pubkey::{ParsePubkeyError, Pubkey, pubkey};
use solana_signature::ParseSignatureError;
use solana_transaction_error::TransactionError;
use thiserror::Error;

/// Program of votes.
const VOTE_PROGRAM: Pubkey = pubkey!("Vote111111111111111111111111111111111111111");

/// A vote has at most this many signatures: the payer's and the voter's.
const MAX_VOTE_SIGNATURES: usize = 2;

/// A block and those of its transactions that were wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What the stream sends when the block is frozen.
    pub meta: BlockMeta,
    /// In the order of execution.
    pub transactions: Vec<TransactionUpdate>,
}

/// Why a node's block cannot be used.
#[derive(Debug, Error)]
pub enum BlockError {
    /// An address is none.
    #[error("an account key is not understood: {0}")]
    Key(#[from] ParsePubkeyError),
    /// A signature is none.
    #[error("a signature is not understood: {0}")]
    Signature(#[from] ParseSignatureError),
    /// Instruction data is not base58.
    #[error("the data of an instruction is not understood: {0}")]
    Data(#[from] bs58::decode::Error),
    /// An amount of tokens is no number.
    #[error("an amount of tokens is not understood: {0}")]
    Amount(#[from] std::num::ParseIntError),
    /// A transaction without a signature.
    #[error("a transaction has no signature")]
    Unsigned,
    /// The node does not keep results of transactions.
    #[error("a transaction has no result")]
    WithoutResult,
}

/// A block as nodes write it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireBlock<'a> {
    #[serde(borrow)]
    blockhash: Cow<'a, str>,
    #[serde(borrow)]
    previous_blockhash: Cow<'a, str>,
    parent_slot: u64,
    block_time: Option<i64>,
    block_height: Option<u64>,
    #[serde(borrow)]
    transactions: Vec<WireTransaction<'a>>,
}

#[derive(Debug, Deserialize)]
struct WireTransaction<'a> {
    #[serde(borrow)]
    transaction: WireContent<'a>,
    #[serde(borrow)]
    meta: Option<WireResult<'a>>,
    /// `"legacy"`, or a number.
    version: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct WireContent<'a> {
    #[serde(borrow)]
    signatures: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    message: WireMessage<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMessage<'a> {
    #[serde(borrow)]
    account_keys: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    instructions: Vec<WireInstruction<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireInstruction<'a> {
    program_id_index: u8,
    accounts: Vec<u8>,
    #[serde(borrow)]
    data: Cow<'a, str>,
    stack_height: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireResult<'a> {
    err: Option<Value>,
    fee: u64,
    pre_balances: Vec<u64>,
    post_balances: Vec<u64>,
    #[serde(borrow)]
    pre_token_balances: Option<Vec<WireTokenBalance<'a>>>,
    #[serde(borrow)]
    post_token_balances: Option<Vec<WireTokenBalance<'a>>>,
    #[serde(borrow)]
    inner_instructions: Option<Vec<WireInnerInstructions<'a>>>,
    log_messages: Option<Vec<String>>,
    #[serde(borrow)]
    loaded_addresses: Option<WireLoadedAddresses<'a>>,
    compute_units_consumed: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTokenBalance<'a> {
    account_index: u8,
    #[serde(borrow)]
    mint: Cow<'a, str>,
    #[serde(borrow)]
    owner: Option<Cow<'a, str>>,
    #[serde(borrow)]
    program_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    ui_token_amount: WireTokenAmount<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTokenAmount<'a> {
    #[serde(borrow)]
    amount: Cow<'a, str>,
    decimals: u8,
    ui_amount_string: String,
}

#[derive(Debug, Deserialize)]
struct WireInnerInstructions<'a> {
    index: u8,
    #[serde(borrow)]
    instructions: Vec<WireInstruction<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct WireLoadedAddresses<'a> {
    #[serde(borrow)]
    writable: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    readonly: Vec<Cow<'a, str>>,
}

impl WireBlock<'_> {
    /// The block of `slot`, with the transactions that are `wanted` by their account keys and the owners of their token
    /// accounts; the others are not converted.
    ///
    /// # Errors
    /// [`BlockError`].
    pub fn convert(
        self,
        slot: u64,
        wanted: impl Fn(&[Pubkey], &[Pubkey]) -> bool,
    ) -> Result<Block, BlockError> {
        let count = u64::try_from(self.transactions.len()).unwrap_or(u64::MAX);
        let mut transactions = Vec::new();
        for (index, each) in (0..).zip(self.transactions) {
            let account_keys = each.account_keys()?;
            if wanted(&account_keys, &each.token_owners()?) {
                transactions.push(each.convert(slot, index, account_keys)?);
            }
        }
        Ok(Block {
            meta: BlockMeta {
                slot,
                parent_slot: self.parent_slot,
                blockhash: self.blockhash.into_owned(),
                parent_blockhash: self.previous_blockhash.into_owned(),
                block_time: self.block_time,
                block_height: self.block_height,
                executed_transaction_count: count,
            },
            transactions,
        })
    }
}

impl WireTransaction<'_> {
    /// Static keys, then loaded writable ones, then loaded read-only ones.
    fn account_keys(&self) -> Result<Vec<Pubkey>, BlockError> {
        let loaded = self
            .meta
            .as_ref()
            .and_then(|meta| meta.loaded_addresses.as_ref());
        let loaded = loaded
            .into_iter()
            .flat_map(|loaded| loaded.writable.iter().chain(&loaded.readonly));
        let keys = self.transaction.message.account_keys.iter().chain(loaded);
        keys.map(|key| Ok(key.parse()?)).collect()
    }

    /// Some several times.
    fn token_owners(&self) -> Result<Vec<Pubkey>, BlockError> {
        let balances = self
            .meta
            .iter()
            .flat_map(|meta| [&meta.pre_token_balances, &meta.post_token_balances])
            .flatten()
            .flatten();
        let owners = balances.filter_map(|balance| balance.owner.as_ref());
        owners.map(|owner| Ok(owner.parse()?)).collect()
    }

    fn convert(
        self,
        slot: u64,
        index: u64,
        account_keys: Vec<Pubkey>,
    ) -> Result<TransactionUpdate, BlockError> {
        let meta = self.meta.ok_or(BlockError::WithoutResult)?;
        let signatures = &self.transaction.signatures;
        let first = signatures.first().ok_or(BlockError::Unsigned)?;
        let instructions = self.transaction.message.instructions.into_iter();
        let instructions: Vec<_> = instructions.map(instruction).collect::<Result<_, _>>()?;
        let inner = meta.inner_instructions.unwrap_or_default().into_iter();
        let inner_instructions = inner
            .map(|group| {
                let inner = group.instructions.into_iter().map(inner_instruction);
                Ok((group.index, inner.collect::<Result<_, BlockError>>()?))
            })
            .collect::<Result<_, BlockError>>()?;
        let legacy = self.version.is_none_or(|version| version == "legacy");
        Ok(TransactionUpdate {
            slot,
            index,
            signature: first.parse()?,
            is_vote: legacy
                && signatures.len() <= MAX_VOTE_SIGNATURES
                && is_vote(&instructions, &account_keys),
            error: meta.err.map(readable),
            account_keys,
            writable: Vec::new(),
            instructions,
            inner_instructions,
            logs_missing: meta.log_messages.is_none(),
            log_messages: meta.log_messages.unwrap_or_default(),
            fee: meta.fee,
            compute_units: meta.compute_units_consumed,
            pre_balances: meta.pre_balances,
            post_balances: meta.post_balances,
            pre_token_balances: token_balances(meta.pre_token_balances)?,
            post_token_balances: token_balances(meta.post_token_balances)?,
        })
    }
}

fn instruction(wire: WireInstruction<'_>) -> Result<Instruction, BlockError> {
    Ok(Instruction {
        program_index: wire.program_id_index,
        data: bs58::decode(&*wire.data).into_vec()?,
        accounts: wire.accounts,
    })
}

fn inner_instruction(wire: WireInstruction<'_>) -> Result<InnerInstruction, BlockError> {
    Ok(InnerInstruction {
        program_index: wire.program_id_index,
        data: bs58::decode(&*wire.data).into_vec()?,
        accounts: wire.accounts,
        stack_height: wire.stack_height,
    })
}

fn token_balances(
    wire: Option<Vec<WireTokenBalance<'_>>>,
) -> Result<Vec<TokenBalance>, BlockError> {
    let wire = wire.unwrap_or_default().into_iter();
    wire.map(token_balance).collect()
}

fn token_balance(wire: WireTokenBalance<'_>) -> Result<TokenBalance, BlockError> {
    let key = |text: Option<Cow<'_, str>>| text.map(|text| text.parse()).transpose();
    let amount = wire.ui_token_amount;
    Ok(TokenBalance {
        account_index: wire.account_index,
        mint: wire.mint.parse()?,
        owner: key(wire.owner)?,
        program: key(wire.program_id)?,
        amount: amount.amount.parse()?,
        decimals: amount.decimals,
        shown_amount: amount.ui_amount_string,
    })
}

/// Whether a single instruction, of the program of votes, is all there is.
fn is_vote(instructions: &[Instruction], account_keys: &[Pubkey]) -> bool {
    let [only] = instructions else {
        return false;
    };
    account_keys.get(usize::from(only.program_index)) == Some(&VOTE_PROGRAM)
}

/// The error of a failed transaction, in the words of the stream. One that this build does not know is shown as nodes
/// write it: that the transaction failed matters more than why.
fn readable(error: Value) -> String {
    match serde_json::from_value::<TransactionError>(as_declared(error.clone())) {
        Ok(error) => error.to_string(),
        Err(_) => format!("unknown transaction error {error}"),
    }
}

/// Nodes write one error with a text that its type does not have any more.
fn as_declared(mut error: Value) -> Value {
    const WITH_TEXT: &str = "BorshIoError";
    if let Some(inner) = error.pointer_mut("/InstructionError/1")
        && inner.get(WITH_TEXT).is_some()
    {
        *inner = WITH_TEXT.into();
    }
    error
}

#[cfg(test)]
mod tests;

//! Updates of the stream in Sluice's own types: account writes, transactions, slot statuses, block metadata.

use std::time::SystemTime;

use bytes::Bytes;
use sluice_chain_types::SlotStatus;
use solana_pubkey::Pubkey;
use solana_signature::Signature;

/// One message of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Names of the request's filters that matched, in the server's order.
    pub filters: Vec<String>,
    /// When the server made the message, by the server's clock; absent on old servers.
    pub created_at: Option<SystemTime>,
    /// The bank that it is of, among all banks of the server's validator, which numbers them; absent on servers that send none
    /// (all released ones), and of what belongs to no bank.
    pub bank_id: Option<u64>,
    /// The content.
    pub body: Body,
}

impl Update {
    /// The slot that it is of.
    pub(crate) fn slot(&self) -> u64 {
        match &self.body {
            Body::Account(account) => account.slot,
            Body::Transaction(transaction) => transaction.slot,
            Body::Slot(status) => status.slot,
            Body::BlockMeta(meta) => meta.slot,
        }
    }

    /// Whether both are the same transaction, or the same write: of one account, by one transaction, in one slot. Servers
    /// number writes differently.
    pub(crate) fn is_same_content(&self, other: &Self) -> bool {
        match (&self.body, &other.body) {
            (Body::Account(one), Body::Account(other)) => {
                let key = |write: &AccountUpdate| (write.slot, write.pubkey, write.txn_signature);
                key(one) == key(other)
            }
            (Body::Transaction(one), Body::Transaction(other)) => one.signature == other.signature,
            _ => false,
        }
    }
}

/// The content of an [`Update`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// An account was written.
    Account(AccountUpdate),
    /// A transaction was executed.
    Transaction(Box<TransactionUpdate>),
    /// A slot changed its status.
    Slot(SlotUpdate),
    /// A block was frozen.
    BlockMeta(BlockMeta),
}

/// One write to one account: the whole account as it is after the write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountUpdate {
    /// Slot of the bank that made the write.
    pub slot: u64,
    /// The account.
    pub pubkey: Pubkey,
    /// Owner program after the write.
    pub owner: Pubkey,
    /// Balance after the write; 0 means that the account is closed.
    pub lamports: u64,
    /// Whether the account holds a program.
    pub executable: bool,
    /// Epoch at which rent is due next.
    pub rent_epoch: u64,
    /// Data after the write.
    pub data: Bytes,
    /// Orders the writes of one slot within one validator process. It says nothing across
    /// validators or restarts.
    pub write_version: u64,
    /// The transaction that wrote, when a transaction did.
    pub txn_signature: Option<Signature>,
    /// Whether the write was read from the validator's start-up snapshot.
    pub is_startup: bool,
}

/// One executed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionUpdate {
    /// Slot of the bank that executed it.
    pub slot: u64,
    /// Position within the slot, from 0.
    pub index: u64,
    /// First signature.
    pub signature: Signature,
    /// Whether it is a vote.
    pub is_vote: bool,
    /// Why it failed, readable; `None` when it succeeded.
    pub error: Option<String>,
    /// Static keys, then loaded writable ones, then loaded read-only ones: the order in which
    /// instructions index them.
    pub account_keys: Vec<Pubkey>,
    /// Indexes in `account_keys` of those that it may write; none of a transaction that no stream has sent.
    pub writable: Vec<u8>,
    /// Top-level instructions.
    pub instructions: Vec<Instruction>,
    /// Instructions invoked by programs, by the index of the top-level instruction they ran under.
    pub inner_instructions: Vec<(u8, Vec<InnerInstruction>)>,
    /// Program logs, in order. The validator may have cut them: the line `Log truncated` says so.
    pub log_messages: Vec<String>,
    /// Whether the validator recorded no logs at all, which is not the same as an empty list.
    pub logs_missing: bool,
    /// Fee paid, in lamports.
    pub fee: u64,
    /// Compute units used, when the validator recorded them.
    pub compute_units: Option<u64>,
    /// Lamports of every account before, in the order of `account_keys`.
    pub pre_balances: Vec<u64>,
    /// Lamports of every account after, in the order of `account_keys`.
    pub post_balances: Vec<u64>,
    /// Tokens in the accounts that are token accounts before it.
    pub pre_token_balances: Vec<TokenBalance>,
    /// Tokens in the accounts that are token accounts after it.
    pub post_token_balances: Vec<TokenBalance>,
}

impl TransactionUpdate {
    /// The accounts that it may write. Those that it invokes are not among them: they are locked as if they were read.
    pub fn writable_accounts(&self) -> impl Iterator<Item = &Pubkey> {
        let is_invoked = |at: &u8| {
            let mut instructions = self.instructions.iter();
            instructions.any(|instruction| instruction.program_index == *at)
        };
        let written = self.writable.iter().filter(move |at| !is_invoked(at));
        written.filter_map(|at| self.account_keys.get(usize::from(*at)))
    }

    /// The owners of the token accounts that it had or has balances of, those of closed ones included; some several times.
    pub fn token_owners(&self) -> impl Iterator<Item = &Pubkey> {
        let balances = self.pre_token_balances.iter();
        let balances = balances.chain(&self.post_token_balances);
        balances.filter_map(|balance| balance.owner.as_ref())
    }
}

/// The tokens in a token account before or after a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenBalance {
    /// Index of the token account in `account_keys`.
    pub account_index: u8,
    /// Mint of the tokens.
    pub mint: Pubkey,
    /// Owner of the token account; absent where an old validator did not record it.
    pub owner: Option<Pubkey>,
    /// The token program; absent where an old validator did not record it.
    pub program: Option<Pubkey>,
    /// How many, in the smallest unit.
    pub amount: u64,
    /// Decimals of the mint.
    pub decimals: u8,
    /// The amount as the mint has it shown.
    pub shown_amount: String,
}

/// An instruction of a transaction's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Index of the program in `account_keys`.
    pub program_index: u8,
    /// Indexes of the accounts in `account_keys`.
    pub accounts: Vec<u8>,
    /// Instruction data.
    pub data: Vec<u8>,
}

/// An instruction that a program invoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerInstruction {
    /// Index of the program in `account_keys`.
    pub program_index: u8,
    /// Indexes of the accounts in `account_keys`.
    pub accounts: Vec<u8>,
    /// Instruction data.
    pub data: Vec<u8>,
    /// Depth of the call, 2 for one invoked by a top-level instruction; absent on old validators.
    pub stack_height: Option<u32>,
}

/// A slot's change of status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotUpdate {
    /// The slot.
    pub slot: u64,
    /// Its parent, when the server said so. `Confirmed` and `Completed` often come without one.
    pub parent: Option<u64>,
    /// The status it reached.
    pub status: SlotStatus,
    /// Why the slot is dead, with `SlotStatus::Dead`.
    pub dead_error: Option<String>,
}

/// A frozen block, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockMeta {
    /// The slot.
    pub slot: u64,
    /// Slot of the parent block.
    pub parent_slot: u64,
    /// Hash of the block, base58.
    pub blockhash: String,
    /// Hash of the parent block, base58.
    pub parent_blockhash: String,
    /// Estimated production time, unix seconds.
    pub block_time: Option<i64>,
    /// Number of blocks below this one.
    pub block_height: Option<u64>,
    /// Transactions executed in the block, votes included.
    pub executed_transaction_count: u64,
}

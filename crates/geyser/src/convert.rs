//! Converts messages of the protocol to updates (pure).

#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sluice_chain_types::SlotStatus;
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_transaction_error::TransactionError;
use yellowstone_grpc_proto::{
    geyser as proto, prelude::subscribe_update::UpdateOneof, prost::Message,
    prost_types::Timestamp, solana::storage::confirmed_block as block,
};

use crate::{
    error::StreamError,
    update::{
        AccountUpdate, BlockMeta, Body, InnerInstruction, Instruction, SlotUpdate, TokenBalance,
        TransactionUpdate, Update,
    },
};

/// A message as the reader handles it.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart at once; a box would cost an allocation per update"
)]
pub(crate) enum Incoming {
    /// Something to hand to the consumer.
    Update(Update),
    /// The server asks whether this side lives.
    Ping,
    /// The answer to a ping of this side, or a kind of message that was not asked for.
    Nothing,
}

/// Reads one message.
///
/// # Errors
/// [`StreamError::Protocol`] when a field that must be there is missing or malformed. Skipping such
/// a message would lose an update without a trace.
pub(crate) fn incoming(message: proto::SubscribeUpdate) -> Result<Incoming, StreamError> {
    let bank_id = message.update_oneof.as_ref().and_then(bank_id);
    let body = match message.update_oneof {
        Some(UpdateOneof::Account(update)) => Body::Account(account(update)?),
        Some(UpdateOneof::Transaction(update)) => Body::Transaction(Box::new(transaction(update)?)),
        Some(UpdateOneof::Slot(update)) => Body::Slot(slot(update)?),
        Some(UpdateOneof::BlockMeta(update)) => Body::BlockMeta(block_meta(update)),
        Some(UpdateOneof::Ping(_)) => return Ok(Incoming::Ping),
        Some(_) => return Ok(Incoming::Nothing),
        None => {
            return Err(broken(
                "a message without content, or of a kind unknown here",
            ));
        }
    };
    Ok(Incoming::Update(Update {
        filters: message.filters,
        created_at: message.created_at.and_then(created_at),
        bank_id,
        body,
    }))
}

/// Reads one message of the stream from its bytes, as the stream does; `None` for one that carries
/// nothing for the consumer.
///
/// # Errors
/// [`StreamError::Protocol`] when it is not a message, or a field is missing or malformed.
pub fn decode(bytes: Bytes) -> Result<Option<Update>, StreamError> {
    let message = proto::SubscribeUpdate::decode(bytes)
        .map_err(|error| broken(format!("a message that cannot be decoded: {error}")))?;
    Ok(match incoming(message)? {
        Incoming::Update(update) => Some(update),
        Incoming::Ping | Incoming::Nothing => None,
    })
}

fn broken(what: impl Into<String>) -> StreamError {
    StreamError::Protocol(what.into())
}

fn created_at(timestamp: Timestamp) -> Option<SystemTime> {
    let seconds = u64::try_from(timestamp.seconds).ok()?;
    let nanos = u32::try_from(timestamp.nanos).ok()?;
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::new(seconds, 0))?
        .checked_add(Duration::from_nanos(nanos.into()))
}

/// The bank of a message. In messages that cannot leave it out, 0 says that the server sends none: it is the number of the
/// bank of the first slot ever, of which no stream tells.
fn bank_id(update: &UpdateOneof) -> Option<u64> {
    let id = match update {
        UpdateOneof::Account(update) => update.bank_id?,
        UpdateOneof::Slot(update) => update.bank_id?,
        UpdateOneof::Transaction(update) => update.bank_id,
        UpdateOneof::BlockMeta(update) => update.bank_id,
        _ => return None,
    };
    (id != 0).then_some(id)
}

fn pubkey(bytes: &[u8], what: &str) -> Result<Pubkey, StreamError> {
    Pubkey::try_from(bytes)
        .map_err(|_| broken(format!("{what} has {} bytes instead of 32", bytes.len())))
}

fn signature(bytes: &[u8], what: &str) -> Result<Signature, StreamError> {
    Signature::try_from(bytes)
        .map_err(|_| broken(format!("{what} has {} bytes instead of 64", bytes.len())))
}

fn index(value: u32, what: &str) -> Result<u8, StreamError> {
    u8::try_from(value).map_err(|_| broken(format!("{what} {value} does not fit in a byte")))
}

fn account(update: proto::SubscribeUpdateAccount) -> Result<AccountUpdate, StreamError> {
    let info = update
        .account
        .ok_or_else(|| broken("an account update without its account"))?;
    Ok(AccountUpdate {
        slot: update.slot,
        pubkey: pubkey(&info.pubkey, "the key of an account")?,
        owner: pubkey(&info.owner, "the owner of an account")?,
        lamports: info.lamports,
        executable: info.executable,
        rent_epoch: info.rent_epoch,
        data: info.data,
        write_version: info.write_version,
        txn_signature: info
            .txn_signature
            .map(|bytes| signature(&bytes, "the signature of an account write"))
            .transpose()?,
        is_startup: update.is_startup,
    })
}

fn slot(update: proto::SubscribeUpdateSlot) -> Result<SlotUpdate, StreamError> {
    let status = match update.status() {
        // The accessor reads unknown numbers as the first status, which would seal a slot.
        proto::SlotStatus::SlotProcessed if update.status != 0 => {
            return Err(broken(format!(
                "the slot status {} is unknown",
                update.status
            )));
        }
        proto::SlotStatus::SlotProcessed => SlotStatus::Processed,
        proto::SlotStatus::SlotConfirmed => SlotStatus::Confirmed,
        proto::SlotStatus::SlotFinalized => SlotStatus::Finalized,
        proto::SlotStatus::SlotFirstShredReceived => SlotStatus::FirstShredReceived,
        proto::SlotStatus::SlotCompleted => SlotStatus::Completed,
        proto::SlotStatus::SlotCreatedBank => SlotStatus::CreatedBank,
        proto::SlotStatus::SlotDead => SlotStatus::Dead,
    };
    Ok(SlotUpdate {
        slot: update.slot,
        parent: update.parent,
        status,
        dead_error: update.dead_error,
    })
}

fn block_meta(update: proto::SubscribeUpdateBlockMeta) -> BlockMeta {
    BlockMeta {
        slot: update.slot,
        parent_slot: update.parent_slot,
        blockhash: update.blockhash,
        parent_blockhash: update.parent_blockhash,
        block_time: update.block_time.map(|time| time.timestamp),
        block_height: update.block_height.map(|height| height.block_height),
        executed_transaction_count: update.executed_transaction_count,
    }
}

fn transaction(
    update: proto::SubscribeUpdateTransaction,
) -> Result<TransactionUpdate, StreamError> {
    let info = update
        .transaction
        .ok_or_else(|| broken("a transaction update without its transaction"))?;
    let message = info
        .transaction
        .and_then(|transaction| transaction.message)
        .ok_or_else(|| broken("a transaction without its message"))?;
    let meta = info
        .meta
        .ok_or_else(|| broken("a transaction without its result"))?;
    Ok(TransactionUpdate {
        slot: update.slot,
        index: info.index,
        signature: signature(&info.signature, "the signature of a transaction")?,
        is_vote: info.is_vote,
        error: meta.err.map(|error| readable(&error.err)),
        account_keys: message
            .account_keys
            .iter()
            .chain(&meta.loaded_writable_addresses)
            .chain(&meta.loaded_readonly_addresses)
            .map(|bytes| pubkey(bytes, "an account key of a transaction"))
            .collect::<Result<_, _>>()?,
        writable: writable(&message, meta.loaded_writable_addresses.len())?,
        instructions: message
            .instructions
            .into_iter()
            .map(instruction)
            .collect::<Result<_, _>>()?,
        inner_instructions: meta
            .inner_instructions
            .into_iter()
            .map(inner_instructions)
            .collect::<Result<_, _>>()?,
        log_messages: meta.log_messages,
        logs_missing: meta.log_messages_none,
        fee: meta.fee,
        compute_units: meta.compute_units_consumed,
        pre_balances: meta.pre_balances,
        post_balances: meta.post_balances,
        pre_token_balances: token_balances(meta.pre_token_balances)?,
        post_token_balances: token_balances(meta.post_token_balances)?,
    })
}

/// Indexes of the keys that a message may write. Of its own the last of those that sign, and the last of the others, are read
/// only, so many as its header says; of those that it loads the first are writable.
fn writable(message: &block::Message, loaded: usize) -> Result<Vec<u8>, StreamError> {
    let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let header = message.header.unwrap_or_default();
    let signed = count(header.num_required_signatures);
    let written_and_signed = signed.saturating_sub(count(header.num_readonly_signed_accounts));
    let own = message.account_keys.len();
    let written = own.saturating_sub(count(header.num_readonly_unsigned_accounts));
    let indexes = (0..written_and_signed.min(own))
        .chain(signed..written)
        .chain(own..own.saturating_add(loaded));
    indexes
        .map(|at| {
            u8::try_from(at)
                .map_err(|_| broken(format!("the account key {at} has no index of a byte")))
        })
        .collect()
}

fn token_balances(balances: Vec<block::TokenBalance>) -> Result<Vec<TokenBalance>, StreamError> {
    balances.into_iter().map(token_balance).collect()
}

fn token_balance(balance: block::TokenBalance) -> Result<TokenBalance, StreamError> {
    let key = |text: &str, what: &str| {
        text.parse()
            .map_err(|_| broken(format!("the {what} of a token balance is {text:?}")))
    };
    // Texts that an old validator did not record are empty.
    let optional = |text: &str, what| (!text.is_empty()).then(|| key(text, what)).transpose();
    let amount = balance
        .ui_token_amount
        .ok_or_else(|| broken("a token balance without its amount"))?;
    Ok(TokenBalance {
        account_index: index(
            balance.account_index,
            "the account index of a token balance",
        )?,
        mint: key(&balance.mint, "mint")?,
        owner: optional(&balance.owner, "owner")?,
        program: optional(&balance.program_id, "program")?,
        amount: amount
            .amount
            .parse()
            .map_err(|_| broken(format!("a token balance of {:?}", amount.amount)))?,
        decimals: index(amount.decimals, "the decimals of a token balance")?,
        shown_amount: amount.ui_amount_string,
    })
}

/// The error of a failed transaction. A kind added to the chain after this build is shown as bytes:
/// that the transaction failed matters more than why.
fn readable(error: &[u8]) -> String {
    match bincode::deserialize::<TransactionError>(error) {
        Ok(error) => error.to_string(),
        Err(_) => format!("unknown transaction error {error:02x?}"),
    }
}

fn instruction(instruction: block::CompiledInstruction) -> Result<Instruction, StreamError> {
    Ok(Instruction {
        program_index: index(instruction.program_id_index, "the program index")?,
        accounts: instruction.accounts,
        data: instruction.data,
    })
}

fn inner_instructions(
    group: block::InnerInstructions,
) -> Result<(u8, Vec<InnerInstruction>), StreamError> {
    let instructions = group.instructions.into_iter().map(|inner| {
        Ok(InnerInstruction {
            program_index: index(inner.program_id_index, "the program index")?,
            accounts: inner.accounts,
            data: inner.data,
            stack_height: inner.stack_height,
        })
    });
    Ok((
        index(group.index, "the instruction index")?,
        instructions.collect::<Result<_, _>>()?,
    ))
}

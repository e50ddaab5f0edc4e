//! Owned messages, converted from what the validator lends to its callbacks.

use agave_geyser_plugin_interface::geyser_plugin_interface::{
    ReplicaAccountInfoVersions, ReplicaBlockInfoVersions, ReplicaEntryInfoVersions,
    ReplicaTransactionInfoVersions, SlotStatus,
};
use bytes::Bytes;
use solana_message::{VersionedMessage, compiled_instruction::CompiledInstruction};
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;
use solana_transaction_status::{
    InnerInstructions, Reward, RewardType, RewardsAndNumPartitions, TransactionStatusMeta,
    TransactionTokenBalance,
};
use thiserror::Error;
use yellowstone_grpc_proto::{
    geyser, prost::Message as _, solana::storage::confirmed_block as wire,
};

use crate::message::{AccountUpdate, Address, Slot, SlotUpdate, TransactionUpdate};

mod token_owners;

/// Why a notification could not be turned into a message.
#[derive(Debug, Error)]
pub enum ConvertError {
    /// The validator used another layout than its 4.2 line does.
    #[error("unsupported version of the {0} notification")]
    Version(&'static str),
    /// An address is not 32 bytes long.
    #[error("an address of {0} bytes")]
    Address(usize),
    /// A transaction error could not be serialized.
    #[error("cannot serialize a transaction error: {0}")]
    Error(#[from] wincode::WriteError),
}

fn address(bytes: &[u8]) -> Result<Address, ConvertError> {
    bytes
        .try_into()
        .map_err(|_| ConvertError::Address(bytes.len()))
}

/// Copies an account write.
///
/// # Errors
///
/// [`ConvertError`] when the layout is not the one of validator 4.2.
pub fn account(
    info: &ReplicaAccountInfoVersions,
    slot: Slot,
    is_startup: bool,
) -> Result<AccountUpdate, ConvertError> {
    let ReplicaAccountInfoVersions::V0_0_3(info) = info else {
        return Err(ConvertError::Version("account"));
    };
    Ok(AccountUpdate {
        slot,
        address: address(info.pubkey)?,
        owner: address(info.owner)?,
        lamports: info.lamports,
        executable: info.executable,
        rent_epoch: info.rent_epoch,
        data: Bytes::copy_from_slice(info.data),
        write_version: info.write_version,
        txn_signature: info.txn.map(|txn| <[u8; 64]>::from(*txn.signature())),
        is_startup,
    })
}

/// Copies a slot status.
pub fn slot_status(slot: Slot, parent: Option<Slot>, status: &SlotStatus) -> SlotUpdate {
    let (status, dead_error) = match status {
        SlotStatus::Processed => (geyser::SlotStatus::SlotProcessed, None),
        SlotStatus::Confirmed => (geyser::SlotStatus::SlotConfirmed, None),
        SlotStatus::Rooted => (geyser::SlotStatus::SlotFinalized, None),
        SlotStatus::FirstShredReceived => (geyser::SlotStatus::SlotFirstShredReceived, None),
        SlotStatus::Completed => (geyser::SlotStatus::SlotCompleted, None),
        SlotStatus::CreatedBank => (geyser::SlotStatus::SlotCreatedBank, None),
        SlotStatus::Dead(error) => (geyser::SlotStatus::SlotDead, Some(error.as_str().into())),
    };
    SlotUpdate {
        slot,
        parent,
        status,
        dead_error,
    }
}

/// Copies a block's metadata. `bank_id` stays 0: the 4.2 interface has none.
///
/// # Errors
///
/// [`ConvertError`] when the layout is not the one of validator 4.2.
pub fn block_meta(
    info: &ReplicaBlockInfoVersions,
) -> Result<geyser::SubscribeUpdateBlockMeta, ConvertError> {
    let ReplicaBlockInfoVersions::V0_0_4(info) = info else {
        return Err(ConvertError::Version("block"));
    };
    Ok(geyser::SubscribeUpdateBlockMeta {
        slot: info.slot,
        blockhash: info.blockhash.to_owned(),
        rewards: Some(rewards(info.rewards)),
        block_time: info
            .block_time
            .map(|timestamp| wire::UnixTimestamp { timestamp }),
        block_height: info
            .block_height
            .map(|block_height| wire::BlockHeight { block_height }),
        parent_slot: info.parent_slot,
        parent_blockhash: info.parent_blockhash.to_owned(),
        executed_transaction_count: info.executed_transaction_count,
        entries_count: info.entry_count,
        bank_id: 0,
    })
}

/// Copies an entry. `bank_id` stays 0 as in [`block_meta`].
///
/// # Errors
///
/// [`ConvertError`] when the layout is not the one of validator 4.2.
pub fn entry(
    info: &ReplicaEntryInfoVersions,
) -> Result<geyser::SubscribeUpdateEntry, ConvertError> {
    let ReplicaEntryInfoVersions::V0_0_2(info) = info else {
        return Err(ConvertError::Version("entry"));
    };
    Ok(geyser::SubscribeUpdateEntry {
        slot: info.slot,
        index: info.index as u64,
        num_hashes: info.num_hashes,
        hash: info.hash.to_vec(),
        executed_transaction_count: info.executed_transaction_count,
        starting_transaction_index: info.starting_transaction_index as u64,
        bank_id: 0,
    })
}

/// Copies an executed transaction with its full status. `bank_id` stays 0 as in [`block_meta`].
///
/// # Errors
///
/// [`ConvertError`] when the layout is not the one of validator 4.2.
pub fn transaction(
    info: &ReplicaTransactionInfoVersions,
    slot: Slot,
) -> Result<TransactionUpdate, ConvertError> {
    let ReplicaTransactionInfoVersions::V0_0_3(info) = info else {
        return Err(ConvertError::Version("transaction"));
    };
    let loaded = &info.transaction_status_meta.loaded_addresses;
    let keys = info
        .transaction
        .message
        .static_account_keys()
        .iter()
        .chain(&loaded.writable)
        .chain(&loaded.readonly)
        .map(|key| key.to_bytes())
        .collect();
    let wire_info = geyser::SubscribeUpdateTransactionInfo {
        signature: info.signature.as_ref().to_vec(),
        is_vote: info.is_vote,
        transaction: Some(versioned_transaction(info.transaction)),
        meta: Some(status_meta(info.transaction_status_meta)?),
        index: info.index as u64,
    };
    Ok(TransactionUpdate {
        slot,
        signature: <[u8; 64]>::from(*info.signature),
        is_vote: info.is_vote,
        failed: info.transaction_status_meta.status.is_err(),
        keys,
        token_owners: token_owners::of(info.transaction_status_meta),
        wire_bytes: wire_info.encoded_len(),
        info: wire_info,
    })
}

fn versioned_transaction(transaction: &VersionedTransaction) -> wire::Transaction {
    wire::Transaction {
        signatures: transaction
            .signatures
            .iter()
            .map(|signature| signature.as_ref().to_vec())
            .collect(),
        message: Some(message(&transaction.message)),
    }
}

fn message(message: &VersionedMessage) -> wire::Message {
    let header = message.header();
    let config = match message {
        VersionedMessage::V1(message) => Some(wire::TransactionConfig {
            priority_fee: message.config.priority_fee,
            compute_unit_limit: message.config.compute_unit_limit,
            loaded_accounts_data_size_limit: message.config.loaded_accounts_data_size_limit,
            heap_size: message.config.heap_size,
        }),
        VersionedMessage::Legacy(_) | VersionedMessage::V0(_) => None,
    };
    wire::Message {
        header: Some(wire::MessageHeader {
            num_required_signatures: header.num_required_signatures.into(),
            num_readonly_signed_accounts: header.num_readonly_signed_accounts.into(),
            num_readonly_unsigned_accounts: header.num_readonly_unsigned_accounts.into(),
        }),
        account_keys: message
            .static_account_keys()
            .iter()
            .map(|key| key.to_bytes().to_vec())
            .collect(),
        recent_blockhash: message.recent_blockhash().to_bytes().to_vec(),
        instructions: message.instructions().iter().map(instruction).collect(),
        versioned: !matches!(message, VersionedMessage::Legacy(_)),
        address_table_lookups: message
            .address_table_lookups()
            .unwrap_or_default()
            .iter()
            .map(|lookup| wire::MessageAddressTableLookup {
                account_key: lookup.account_key.to_bytes().to_vec(),
                writable_indexes: lookup.writable_indexes.clone(),
                readonly_indexes: lookup.readonly_indexes.clone(),
            })
            .collect(),
        config,
    }
}

fn instruction(instruction: &CompiledInstruction) -> wire::CompiledInstruction {
    wire::CompiledInstruction {
        program_id_index: instruction.program_id_index.into(),
        accounts: instruction.accounts.clone(),
        data: instruction.data.clone(),
    }
}

fn status_meta(meta: &TransactionStatusMeta) -> Result<wire::TransactionStatusMeta, ConvertError> {
    let keys = |keys: &[_]| -> Vec<Vec<u8>> { keys.iter().map(key_bytes).collect() };
    Ok(wire::TransactionStatusMeta {
        err: meta
            .status
            .as_ref()
            .err()
            .map(transaction_error)
            .transpose()?,
        fee: meta.fee,
        pre_balances: meta.pre_balances.clone(),
        post_balances: meta.post_balances.clone(),
        inner_instructions: list(&meta.inner_instructions, inner_instructions),
        inner_instructions_none: meta.inner_instructions.is_none(),
        log_messages: meta.log_messages.clone().unwrap_or_default(),
        log_messages_none: meta.log_messages.is_none(),
        pre_token_balances: list(&meta.pre_token_balances, token_balance),
        post_token_balances: list(&meta.post_token_balances, token_balance),
        rewards: list(&meta.rewards, reward),
        loaded_writable_addresses: keys(&meta.loaded_addresses.writable),
        loaded_readonly_addresses: keys(&meta.loaded_addresses.readonly),
        return_data: meta.return_data.as_ref().map(|data| wire::ReturnData {
            program_id: data.program_id.to_bytes().to_vec(),
            data: data.data.clone(),
        }),
        return_data_none: meta.return_data.is_none(),
        compute_units_consumed: meta.compute_units_consumed,
        cost_units: meta.cost_units,
    })
}

fn key_bytes(key: &impl AsRef<[u8]>) -> Vec<u8> {
    key.as_ref().to_vec()
}

fn list<From, To>(items: &Option<Vec<From>>, convert: impl Fn(&From) -> To) -> Vec<To> {
    items
        .as_deref()
        .unwrap_or_default()
        .iter()
        .map(convert)
        .collect()
}

fn transaction_error(error: &TransactionError) -> Result<wire::TransactionError, ConvertError> {
    Ok(wire::TransactionError {
        err: wincode::serialize(error)?,
    })
}

fn inner_instructions(inner: &InnerInstructions) -> wire::InnerInstructions {
    wire::InnerInstructions {
        index: inner.index.into(),
        instructions: inner
            .instructions
            .iter()
            .map(|inner| wire::InnerInstruction {
                program_id_index: inner.instruction.program_id_index.into(),
                accounts: inner.instruction.accounts.clone(),
                data: inner.instruction.data.clone(),
                stack_height: inner.stack_height,
            })
            .collect(),
    }
}

fn token_balance(balance: &TransactionTokenBalance) -> wire::TokenBalance {
    wire::TokenBalance {
        account_index: balance.account_index.into(),
        mint: balance.mint.clone(),
        ui_token_amount: Some(wire::UiTokenAmount {
            ui_amount: balance.ui_token_amount.ui_amount.unwrap_or_default(),
            decimals: balance.ui_token_amount.decimals.into(),
            amount: balance.ui_token_amount.amount.clone(),
            ui_amount_string: balance.ui_token_amount.ui_amount_string.clone(),
        }),
        owner: balance.owner.clone(),
        program_id: balance.program_id.clone(),
    }
}

fn rewards(rewards: &RewardsAndNumPartitions) -> wire::Rewards {
    wire::Rewards {
        rewards: rewards.rewards.iter().map(reward).collect(),
        num_partitions: rewards
            .num_partitions
            .map(|num_partitions| wire::NumPartitions { num_partitions }),
    }
}

fn reward(reward: &Reward) -> wire::Reward {
    let reward_type = match reward.reward_type {
        None => wire::RewardType::Unspecified,
        Some(RewardType::Fee) => wire::RewardType::Fee,
        Some(RewardType::Rent) => wire::RewardType::Rent,
        Some(RewardType::Staking) => wire::RewardType::Staking,
        Some(RewardType::Voting) => wire::RewardType::Voting,
        Some(RewardType::DeactivatedStake) => wire::RewardType::DeactivatedStake,
    };
    let text = |number: Option<u16>| number.map(|number| number.to_string()).unwrap_or_default();
    wire::Reward {
        pubkey: reward.pubkey.clone(),
        lamports: reward.lamports,
        post_balance: reward.post_balance,
        reward_type: reward_type.into(),
        commission: text(reward.commission.map(u16::from)),
        commission_bps: text(reward.commission_bps),
    }
}

#[cfg(test)]
mod tests;

//! Encodes updates as messages of the wire: the inverse of the client's conversion (pure).

use std::time::{SystemTime, UNIX_EPOCH};

use sluice_chain_types::SlotStatus;
use solana_pubkey::Pubkey;
use solana_transaction_error::TransactionError;
use yellowstone_grpc_proto::{
    geyser::{self as proto, subscribe_update::UpdateOneof},
    prost_types::Timestamp,
    solana::storage::confirmed_block as block,
};

use crate::update::{
    AccountUpdate, BlockMeta, Body, InnerInstruction, SlotUpdate, TokenBalance, TransactionUpdate,
    Update,
};

pub(super) fn update(update: Update) -> proto::SubscribeUpdate {
    let bank_id = update.bank_id;
    proto::SubscribeUpdate {
        filters: update.filters,
        created_at: update.created_at.map(timestamp),
        update_oneof: Some(match update.body {
            Body::Account(update) => UpdateOneof::Account(account(update, bank_id)),
            Body::Transaction(update) => UpdateOneof::Transaction(transaction(*update, bank_id)),
            Body::Slot(update) => UpdateOneof::Slot(slot(update, bank_id)),
            Body::BlockMeta(update) => UpdateOneof::BlockMeta(block_meta(update, bank_id)),
        }),
    }
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp {
        seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(since.subsec_nanos()).unwrap_or(i32::MAX),
    }
}

fn account(update: AccountUpdate, bank_id: Option<u64>) -> proto::SubscribeUpdateAccount {
    proto::SubscribeUpdateAccount {
        slot: update.slot,
        is_startup: update.is_startup,
        bank_id,
        account: Some(proto::SubscribeUpdateAccountInfo {
            pubkey: update.pubkey.to_bytes().to_vec(),
            lamports: update.lamports,
            owner: update.owner.to_bytes().to_vec(),
            executable: update.executable,
            rent_epoch: update.rent_epoch,
            data: update.data,
            write_version: update.write_version,
            txn_signature: update
                .txn_signature
                .map(|signature| signature.as_ref().to_vec()),
        }),
    }
}

fn slot(update: SlotUpdate, bank_id: Option<u64>) -> proto::SubscribeUpdateSlot {
    let status = match update.status {
        SlotStatus::Processed => proto::SlotStatus::SlotProcessed,
        SlotStatus::Confirmed => proto::SlotStatus::SlotConfirmed,
        SlotStatus::Finalized => proto::SlotStatus::SlotFinalized,
        SlotStatus::FirstShredReceived => proto::SlotStatus::SlotFirstShredReceived,
        SlotStatus::Completed => proto::SlotStatus::SlotCompleted,
        SlotStatus::CreatedBank => proto::SlotStatus::SlotCreatedBank,
        SlotStatus::Dead => proto::SlotStatus::SlotDead,
    };
    proto::SubscribeUpdateSlot {
        slot: update.slot,
        parent: update.parent,
        status: status.into(),
        dead_error: update.dead_error,
        bank_id,
    }
}

fn block_meta(update: BlockMeta, bank_id: Option<u64>) -> proto::SubscribeUpdateBlockMeta {
    proto::SubscribeUpdateBlockMeta {
        slot: update.slot,
        parent_slot: update.parent_slot,
        blockhash: update.blockhash,
        parent_blockhash: update.parent_blockhash,
        block_time: update
            .block_time
            .map(|timestamp| block::UnixTimestamp { timestamp }),
        block_height: update
            .block_height
            .map(|block_height| block::BlockHeight { block_height }),
        executed_transaction_count: update.executed_transaction_count,
        bank_id: bank_id.unwrap_or_default(),
        ..proto::SubscribeUpdateBlockMeta::default()
    }
}

/// Keys are sent as static ones, but for those that only a lookup table can bring in their order. A text cannot be turned back into the error it came from, so
/// any failure is sent as the same error.
fn transaction(
    update: TransactionUpdate,
    bank_id: Option<u64>,
) -> proto::SubscribeUpdateTransaction {
    let runs = writable_runs(&update);
    let keys = |(keys, _): &(Vec<Pubkey>, bool)| -> Vec<Vec<u8>> {
        keys.iter().map(|key| key.to_bytes().to_vec()).collect()
    };
    let count = |run: usize| {
        let keys = runs.get(run).map_or(0, |(keys, _)| keys.len());
        u32::try_from(keys).unwrap_or(u32::MAX)
    };
    let loaded = |run: usize| runs.get(run).map(keys).unwrap_or_default();
    let message = block::Message {
        header: Some(block::MessageHeader {
            num_required_signatures: count(0).saturating_add(count(1)),
            num_readonly_signed_accounts: count(1),
            num_readonly_unsigned_accounts: count(3),
        }),
        account_keys: runs.iter().take(STATIC_RUNS).flat_map(keys).collect(),
        instructions: update
            .instructions
            .into_iter()
            .map(|instruction| block::CompiledInstruction {
                program_id_index: instruction.program_index.into(),
                accounts: instruction.accounts,
                data: instruction.data,
            })
            .collect(),
        ..block::Message::default()
    };
    let meta = block::TransactionStatusMeta {
        err: update
            .error
            .map(|_| block::TransactionError { err: failure() }),
        loaded_writable_addresses: loaded(STATIC_RUNS),
        loaded_readonly_addresses: loaded(STATIC_RUNS + 1),
        fee: update.fee,
        pre_balances: update.pre_balances,
        post_balances: update.post_balances,
        pre_token_balances: update
            .pre_token_balances
            .into_iter()
            .map(token_balance)
            .collect(),
        post_token_balances: update
            .post_token_balances
            .into_iter()
            .map(token_balance)
            .collect(),
        inner_instructions: update
            .inner_instructions
            .into_iter()
            .map(inner_instructions)
            .collect(),
        log_messages: update.log_messages,
        log_messages_none: update.logs_missing,
        compute_units_consumed: update.compute_units,
        ..block::TransactionStatusMeta::default()
    };
    proto::SubscribeUpdateTransaction {
        slot: update.slot,
        bank_id: bank_id.unwrap_or_default(),
        transaction: Some(proto::SubscribeUpdateTransactionInfo {
            signature: update.signature.as_ref().to_vec(),
            is_vote: update.is_vote,
            transaction: Some(block::Transaction {
                signatures: vec![update.signature.as_ref().to_vec()],
                message: Some(message),
            }),
            meta: Some(meta),
            index: update.index,
        }),
    }
}

/// Runs of static keys: those that sign and are written, those that sign, those that are written, and the rest.
const STATIC_RUNS: usize = 4;

/// The keys in runs of such as are written and such as are not, in turns; the first run is written, and may be empty.
fn writable_runs(update: &TransactionUpdate) -> Vec<(Vec<Pubkey>, bool)> {
    let mut runs = vec![(Vec::new(), true)];
    for (at, key) in (0_u8..).zip(&update.account_keys) {
        let is_written = update.writable.contains(&at);
        match runs.last_mut() {
            Some((run, written)) if *written == is_written => run.push(*key),
            _ => runs.push((vec![*key], is_written)),
        }
    }
    runs
}

fn token_balance(balance: TokenBalance) -> block::TokenBalance {
    let text = |key: Option<Pubkey>| key.map(|key| key.to_string()).unwrap_or_default();
    block::TokenBalance {
        account_index: balance.account_index.into(),
        mint: balance.mint.to_string(),
        owner: text(balance.owner),
        program_id: text(balance.program),
        ui_token_amount: Some(block::UiTokenAmount {
            ui_amount: balance.shown_amount.parse().unwrap_or_default(),
            decimals: balance.decimals.into(),
            amount: balance.amount.to_string(),
            ui_amount_string: balance.shown_amount,
        }),
    }
}

fn failure() -> Vec<u8> {
    bincode::serialize(&TransactionError::AccountInUse)
        .expect("a variant without fields serialises")
}

fn inner_instructions(group: (u8, Vec<InnerInstruction>)) -> block::InnerInstructions {
    block::InnerInstructions {
        index: group.0.into(),
        instructions: group
            .1
            .into_iter()
            .map(|inner| block::InnerInstruction {
                program_id_index: inner.program_index.into(),
                accounts: inner.accounts,
                data: inner.data,
                stack_height: inner.stack_height,
            })
            .collect(),
    }
}

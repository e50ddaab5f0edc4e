//! Updates as the stream sends them, with fixed content.
//!
//! They stand for a validator's, field by field; in what order they come, and whether they come
//! twice, the test says. They are as strict as it is: nothing makes them agree with one another.

use bytes::Bytes;
use sluice_chain_types::RawAccount;
use sluice_geyser::{
    AccountUpdate, BlockMeta, Body, Instruction, SlotStatus, SlotUpdate, TransactionUpdate, Update,
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

/// An address of equal bytes.
#[must_use]
pub fn key(byte: u8) -> Pubkey {
    Pubkey::new_from_array([byte; 32])
}

/// The program whose accounts, transactions and events the webhooks are about.
#[must_use]
pub fn program() -> Pubkey {
    key(100)
}

fn update(filter: &str, body: Body) -> Update {
    Update {
        filters: vec![filter.to_owned()],
        created_at: None,
        bank_id: None,
        body,
    }
}

/// A status, under the name of the slots filter that let it through.
#[must_use]
pub fn slot(filter: &str, slot: u64, status: SlotStatus) -> Update {
    update(
        filter,
        Body::Slot(SlotUpdate {
            slot,
            parent: None,
            status,
            dead_error: None,
        }),
    )
}

/// The bank is frozen, and the slot confirmed.
#[must_use]
pub fn freeze_and_confirm(filter: &str, number: u64) -> [Update; 2] {
    [SlotStatus::Processed, SlotStatus::Confirmed].map(|status| slot(filter, number, status))
}

/// The creation of a slot's bank, under the name of the slots filter that let it through.
#[must_use]
pub fn created(filter: &str, number: u64) -> Update {
    slot(filter, number, SlotStatus::CreatedBank)
}

/// A write to account 1, which the program owns.
#[must_use]
pub fn account(slot: u64) -> Update {
    account_of(slot, key(1), program(), Bytes::from_static(b"abc"))
}

/// A write that leaves an account like this, by no transaction.
#[must_use]
pub fn written(slot: u64, write_version: u64, account: RawAccount) -> AccountUpdate {
    AccountUpdate {
        slot,
        pubkey: account.pubkey,
        owner: account.owner,
        lamports: account.lamports,
        executable: false,
        rent_epoch: u64::MAX,
        data: account.data,
        write_version,
        txn_signature: None,
        is_startup: false,
    }
}

/// A write of these bytes to an account of this owner.
#[must_use]
pub fn account_of(slot: u64, pubkey: Pubkey, owner: Pubkey, data: Bytes) -> Update {
    let account = AccountUpdate {
        slot,
        pubkey,
        owner,
        lamports: u64::MAX,
        executable: false,
        rent_epoch: 0,
        data,
        write_version: 1,
        txn_signature: Some(Signature::from([7; 64])),
        is_startup: false,
    };
    update("owners", Body::Account(account))
}

/// A transaction that invokes the program, which emits an event.
#[must_use]
pub fn transaction(slot: u64, number: u8) -> Update {
    let transaction = TransactionUpdate {
        slot,
        index: u64::from(number),
        signature: Signature::from([number; 64]),
        is_vote: false,
        error: None,
        account_keys: vec![key(9), program()],
        writable: vec![0],
        instructions: vec![Instruction {
            program_index: 1,
            accounts: vec![0],
            data: vec![1],
        }],
        inner_instructions: Vec::new(),
        log_messages: vec![
            format!("Program {} invoke [1]", program()),
            "Program data: AQIDBAUGBwgJ".to_owned(),
            format!("Program {} success", program()),
        ],
        logs_missing: false,
        fee: 5000,
        compute_units: Some(1234),
        pre_balances: vec![1, 1],
        post_balances: vec![1, 1],
        pre_token_balances: Vec::new(),
        post_token_balances: Vec::new(),
    };
    update("transactions", Body::Transaction(Box::new(transaction)))
}

/// The block of a slot, on that of the slot before.
#[must_use]
pub fn block(slot: u64) -> Update {
    block_on(slot, slot - 1, &format!("hash{slot}"))
}

/// The block of a slot, with this hash, on that of another one.
#[must_use]
pub fn block_on(slot: u64, parent_slot: u64, hash: &str) -> Update {
    block_between(slot, hash, (parent_slot, &format!("hash{parent_slot}")))
}

/// The block of a slot, with this hash, on that of another one with that hash.
#[must_use]
pub fn block_between(slot: u64, hash: &str, (parent_slot, parent_hash): (u64, &str)) -> Update {
    let block = BlockMeta {
        slot,
        parent_slot,
        blockhash: hash.to_owned(),
        parent_blockhash: parent_hash.to_owned(),
        block_time: Some(1_767_225_600),
        block_height: Some(slot),
        executed_transaction_count: 1,
    };
    update("blocks_meta", Body::BlockMeta(block))
}

/// A slot with a write and a transaction: three events.
#[must_use]
pub fn content(slot: u64) -> [Update; 3] {
    [account(slot), transaction(slot, 4), block(slot)]
}

/// A slot with a write and a transaction, from the creation of its bank, under the name of the slots filter, to its block.
#[must_use]
pub fn whole(filter: &str, slot: u64) -> Vec<Update> {
    let created = [created(filter, slot)];
    created.into_iter().chain(content(slot)).collect()
}

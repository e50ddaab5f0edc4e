//! Conversion of the validator's data: every field, as Yellowstone's own plugin sends it.

use agave_geyser_plugin_interface::geyser_plugin_interface::{
    ReplicaAccountInfo, ReplicaAccountInfoV3, ReplicaBlockInfoV4, ReplicaTransactionInfoV3,
};
use solana_message::{Address as Key, Hash, MessageHeader, legacy, v0};
use solana_signature::Signature;

use super::*;

fn transaction_update(message: VersionedMessage, meta: TransactionStatusMeta) -> TransactionUpdate {
    let transaction = VersionedTransaction {
        signatures: vec![Signature::from([7; 64])],
        message,
    };
    let info = ReplicaTransactionInfoV3 {
        signature: &transaction.signatures[0],
        message_hash: &Hash::default(),
        is_vote: false,
        transaction: &transaction,
        transaction_status_meta: &meta,
        index: 4,
    };
    super::transaction(&ReplicaTransactionInfoVersions::V0_0_3(&info), 9).unwrap()
}

#[test]
fn an_account_write_keeps_every_field() {
    let info = ReplicaAccountInfoV3 {
        pubkey: &[1; 32],
        lamports: 2,
        owner: &[3; 32],
        executable: true,
        rent_epoch: 4,
        data: &[5, 6],
        write_version: 7,
        txn: None,
    };
    let update = account(&ReplicaAccountInfoVersions::V0_0_3(&info), 8, false).unwrap();
    let expected = AccountUpdate {
        slot: 8,
        address: [1; 32],
        owner: [3; 32],
        lamports: 2,
        executable: true,
        rent_epoch: 4,
        data: Bytes::from_static(&[5, 6]),
        write_version: 7,
        txn_signature: None,
        is_startup: false,
    };
    assert_eq!(update, expected);
}

#[test]
fn other_layouts_and_addresses_are_refused() {
    let old = ReplicaAccountInfo {
        pubkey: &[1; 32],
        lamports: 0,
        owner: &[1; 32],
        executable: false,
        rent_epoch: 0,
        data: &[],
        write_version: 0,
    };
    let refusal = account(&ReplicaAccountInfoVersions::V0_0_1(&old), 1, false);
    assert!(matches!(refusal, Err(ConvertError::Version("account"))));
    assert!(matches!(address(&[0; 31]), Err(ConvertError::Address(31))));
}

#[test]
fn a_failed_transaction_carries_its_error_as_the_validator_stores_it() {
    let error = TransactionError::InsufficientFundsForRent { account_index: 3 };
    let meta = TransactionStatusMeta {
        status: Err(error.clone()),
        fee: 5_000,
        log_messages: Some(vec!["log".to_owned()]),
        inner_instructions: None,
        ..TransactionStatusMeta::default()
    };
    let update = transaction_update(VersionedMessage::Legacy(legacy::Message::default()), meta);
    assert!(update.failed);
    let wire = update.info.meta.unwrap();
    let stored: TransactionError = wincode::deserialize(&wire.err.unwrap().err).unwrap();
    assert_eq!(stored, error);
    assert_eq!(
        (wire.fee, wire.log_messages),
        (5_000, vec!["log".to_owned()])
    );
    assert!(wire.inner_instructions_none && !wire.log_messages_none && wire.return_data_none);
    assert_eq!((update.slot, update.info.index), (9, 4));
}

#[test]
fn looked_up_addresses_count_as_keys_in_the_runtime_order() {
    let key = |byte| Key::from([byte; 32]);
    let message = v0::Message {
        header: MessageHeader {
            num_required_signatures: 1,
            num_readonly_signed_accounts: 0,
            num_readonly_unsigned_accounts: 1,
        },
        account_keys: vec![key(1), key(2)],
        recent_blockhash: Hash::from([8; 32]),
        instructions: vec![CompiledInstruction {
            program_id_index: 1,
            accounts: vec![0, 2, 3],
            data: vec![9],
        }],
        address_table_lookups: vec![v0::MessageAddressTableLookup {
            account_key: key(5),
            writable_indexes: vec![6],
            readonly_indexes: vec![7],
        }],
    };
    let meta = TransactionStatusMeta {
        loaded_addresses: v0::LoadedAddresses {
            writable: vec![key(3)],
            readonly: vec![key(4)],
        },
        ..TransactionStatusMeta::default()
    };
    let update = transaction_update(VersionedMessage::V0(message), meta);
    assert_eq!(update.keys, [[1; 32], [2; 32], [3; 32], [4; 32]]);
    assert!(!update.failed && update.info.meta.as_ref().unwrap().err.is_none());
    assert_eq!(update.wire_bytes, update.info.encoded_len());
    let wire = update.info.transaction.unwrap().message.unwrap();
    assert!(wire.versioned);
    assert_eq!(wire.recent_blockhash, [8; 32]);
    assert_eq!(wire.account_keys, [[1; 32], [2; 32]]);
    assert_eq!(wire.instructions[0].accounts, [0, 2, 3]);
    assert_eq!(wire.address_table_lookups[0].readonly_indexes, [7]);
}

#[test]
fn a_block_keeps_its_place_in_the_chain() {
    let rewards = RewardsAndNumPartitions {
        rewards: vec![Reward {
            pubkey: "leader".to_owned(),
            lamports: -3,
            post_balance: 4,
            reward_type: Some(RewardType::Fee),
            commission: Some(5),
            commission_bps: None,
        }],
        num_partitions: None,
    };
    let info = ReplicaBlockInfoV4 {
        parent_slot: 1,
        parent_blockhash: "parent",
        slot: 2,
        blockhash: "hash",
        rewards: &rewards,
        block_time: Some(-6),
        block_height: Some(7),
        executed_transaction_count: 8,
        entry_count: 9,
    };
    let meta = block_meta(&ReplicaBlockInfoVersions::V0_0_4(&info)).unwrap();
    assert_eq!((meta.parent_slot, meta.slot), (1, 2));
    assert_eq!(
        (&*meta.parent_blockhash, &*meta.blockhash),
        ("parent", "hash")
    );
    assert_eq!(meta.block_time.unwrap().timestamp, -6);
    assert_eq!(meta.block_height.unwrap().block_height, 7);
    assert_eq!(
        (meta.executed_transaction_count, meta.entries_count),
        (8, 9)
    );
    let reward = &meta.rewards.unwrap().rewards[0];
    assert_eq!(reward.reward_type(), wire::RewardType::Fee);
    assert_eq!((&*reward.commission, &*reward.commission_bps), ("5", ""));
}

//! Conversion of messages: every field, and what is refused.

use super::*;

fn message(update: UpdateOneof) -> proto::SubscribeUpdate {
    proto::SubscribeUpdate {
        update_oneof: Some(update),
        ..proto::SubscribeUpdate::default()
    }
}

fn account_message(pubkey: usize, owner: usize) -> proto::SubscribeUpdate {
    message(UpdateOneof::Account(proto::SubscribeUpdateAccount {
        account: Some(proto::SubscribeUpdateAccountInfo {
            pubkey: vec![1; pubkey],
            owner: vec![2; owner],
            ..proto::SubscribeUpdateAccountInfo::default()
        }),
        ..proto::SubscribeUpdateAccount::default()
    }))
}

fn transaction_message(
    change: impl FnOnce(&mut proto::SubscribeUpdateTransactionInfo),
) -> proto::SubscribeUpdate {
    let mut info = proto::SubscribeUpdateTransactionInfo {
        signature: vec![1; 64],
        transaction: Some(block::Transaction {
            message: Some(block::Message {
                account_keys: vec![vec![1; 32]],
                ..block::Message::default()
            }),
            ..block::Transaction::default()
        }),
        meta: Some(block::TransactionStatusMeta {
            loaded_writable_addresses: vec![vec![2; 32]],
            loaded_readonly_addresses: vec![vec![3; 32]],
            ..block::TransactionStatusMeta::default()
        }),
        ..proto::SubscribeUpdateTransactionInfo::default()
    };
    change(&mut info);
    message(UpdateOneof::Transaction(
        proto::SubscribeUpdateTransaction {
            transaction: Some(info),
            ..proto::SubscribeUpdateTransaction::default()
        },
    ))
}

fn converted(message: proto::SubscribeUpdate) -> Body {
    match incoming(message) {
        Ok(Incoming::Update(update)) => update.body,
        other => panic!("not an update: {other:?}"),
    }
}

fn is_broken(message: proto::SubscribeUpdate) -> bool {
    matches!(incoming(message), Err(StreamError::Protocol(_)))
}

#[test]
fn keys_of_a_wrong_length_break_the_protocol() {
    assert!(matches!(
        converted(account_message(32, 32)),
        Body::Account(_)
    ));
    assert!(is_broken(account_message(31, 32)));
    assert!(is_broken(account_message(32, 33)));
    assert!(is_broken(message(UpdateOneof::Account(
        proto::SubscribeUpdateAccount::default()
    ))));
}

#[test]
fn an_unknown_slot_status_does_not_pass_for_processed() {
    let status = |status| {
        message(UpdateOneof::Slot(proto::SubscribeUpdateSlot {
            status,
            ..proto::SubscribeUpdateSlot::default()
        }))
    };
    let Body::Slot(slot) = converted(status(0)) else {
        panic!("not a slot")
    };
    assert_eq!(slot.status, SlotStatus::Processed);
    assert!(is_broken(status(99)));
}

#[test]
fn loaded_keys_follow_the_static_ones_writable_first() {
    let Body::Transaction(transaction) = converted(transaction_message(|_| {})) else {
        panic!("not a transaction")
    };
    let keys: Vec<u8> = transaction
        .account_keys
        .iter()
        .map(|key| key.to_bytes()[0])
        .collect();
    assert_eq!(keys, [1, 2, 3]);
    assert_eq!(transaction.error, None);
}

#[test]
fn the_last_keys_of_those_that_sign_and_of_those_that_do_not_are_read_only() {
    let message = transaction_message(|info| {
        let transaction = info.transaction.as_mut();
        let message = transaction.and_then(|transaction| transaction.message.as_mut());
        if let Some(message) = message {
            message.account_keys = vec![vec![1; 32]; 7];
            message.header = Some(block::MessageHeader {
                num_required_signatures: 3,
                num_readonly_signed_accounts: 1,
                num_readonly_unsigned_accounts: 2,
            });
        }
    });
    let Body::Transaction(transaction) = converted(message) else {
        panic!("not a transaction")
    };
    // The eighth is loaded to be written, the ninth to be read.
    assert_eq!(transaction.writable, [0, 1, 3, 4, 7]);
}

#[test]
fn a_program_error_names_its_instruction_and_code_and_unknown_bytes_stay_visible() {
    let error = |bytes: Vec<u8>| {
        let message = transaction_message(|info| {
            if let Some(meta) = &mut info.meta {
                meta.err = Some(block::TransactionError { err: bytes });
            }
        });
        let Body::Transaction(transaction) = converted(message) else {
            panic!("not a transaction")
        };
        transaction.error.expect("it failed")
    };
    // Instruction error (8) of instruction 2, custom (25) code 6005.
    let custom = [
        &8u32.to_le_bytes()[..],
        &[2],
        &25u32.to_le_bytes(),
        &6005u32.to_le_bytes(),
    ];
    assert_eq!(
        error(custom.concat()),
        "Error processing Instruction 2: custom program error: 0x1775"
    );
    assert_eq!(
        error(vec![0xff; 4]),
        "unknown transaction error [ff, ff, ff, ff]"
    );
}

#[test]
fn a_transaction_without_message_or_result_breaks_the_protocol() {
    assert!(is_broken(transaction_message(
        |info| info.transaction = None
    )));
    assert!(is_broken(transaction_message(|info| info.meta = None)));
    assert!(is_broken(transaction_message(
        |info| info.signature = vec![1; 63]
    )));
}

#[test]
fn pings_and_kinds_not_asked_for_are_no_updates() {
    let ping = message(UpdateOneof::Ping(proto::SubscribeUpdatePing {}));
    assert!(matches!(incoming(ping), Ok(Incoming::Ping)));
    let pong = message(UpdateOneof::Pong(proto::SubscribeUpdatePong { id: 1 }));
    assert!(matches!(incoming(pong), Ok(Incoming::Nothing)));
    assert!(is_broken(proto::SubscribeUpdate::default()));
}

#[test]
fn an_impossible_time_is_no_time() {
    let at = |seconds, nanos| created_at(Timestamp { seconds, nanos });
    assert_eq!(at(-1, 0), None);
    assert_eq!(at(1, -1), None);
    assert_eq!(at(1, 5), Some(SystemTime::UNIX_EPOCH + Duration::new(1, 5)));
}

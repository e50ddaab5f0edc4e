//! Blocks as a node writes them: a vote, a swap with loaded addresses and an inner call, a failure.

use serde_json::json;
use solana_signature::Signature;

use super::*;

fn key(number: u8) -> Pubkey {
    Pubkey::new_from_array([number; 32])
}

fn signature(number: u8) -> Signature {
    Signature::from([number; 64])
}

fn block(transactions: Value) -> String {
    json!({
        "blockHeight": 90,
        "blockTime": 1_767_225_600,
        "blockhash": key(70).to_string(),
        "parentSlot": 99,
        "previousBlockhash": key(69).to_string(),
        "transactions": transactions,
    })
    .to_string()
}

fn convert(
    transactions: Value,
    wanted: impl Fn(&[Pubkey], &[Pubkey]) -> bool,
) -> Result<Block, BlockError> {
    let text = block(transactions);
    let wire: WireBlock<'_> = serde_json::from_str(&text).expect("of the shape of a block");
    wire.convert(101, wanted)
}

fn vote() -> Value {
    json!({
        "meta": {
            "computeUnitsConsumed": 2100,
            "err": null,
            "fee": 10000,
            "innerInstructions": [],
            "loadedAddresses": { "readonly": [], "writable": [] },
            "logMessages": [],
            "postBalances": [1, 2, 3],
            "postTokenBalances": [],
            "preBalances": [4, 5, 6],
            "preTokenBalances": [],
            "rewards": null,
            "status": { "Ok": null },
        },
        "transaction": {
            "message": {
                "accountKeys": [key(1).to_string(), key(2).to_string(), VOTE_PROGRAM.to_string()],
                "header": {
                    "numReadonlySignedAccounts": 0,
                    "numReadonlyUnsignedAccounts": 1,
                    "numRequiredSignatures": 1,
                },
                "instructions": [
                    { "accounts": [1, 0], "data": "3Bxs3zzLZLuLQEYX", "programIdIndex": 2, "stackHeight": 1 },
                ],
                "recentBlockhash": key(60).to_string(),
            },
            "signatures": [signature(1).to_string()],
        },
        "version": "legacy",
    })
}

fn swap() -> Value {
    json!({
        "meta": {
            "computeUnitsConsumed": 31_000,
            "costUnits": 40_000,
            "err": null,
            "fee": 5000,
            "innerInstructions": [{
                "index": 1,
                "instructions": [
                    { "accounts": [0, 3], "data": "3DTZbgwsozUF", "programIdIndex": 4, "stackHeight": 2 },
                    { "accounts": [], "data": "", "programIdIndex": 1, "stackHeight": null },
                ],
            }],
            "loadedAddresses": { "readonly": [key(14).to_string()], "writable": [key(13).to_string()] },
            "logMessages": ["Program log: one", "Log truncated"],
            "postBalances": [1],
            "postTokenBalances": [{
                "accountIndex": 3,
                "mint": key(20).to_string(),
                "owner": key(21).to_string(),
                "programId": key(22).to_string(),
                "uiTokenAmount": { "amount": "1500000", "decimals": 6, "uiAmount": 1.5, "uiAmountString": "1.5" },
            }],
            "preBalances": [2],
            "returnData": { "data": ["AQ==", "base64"], "programId": key(12).to_string() },
        },
        "transaction": {
            "message": {
                "accountKeys": [key(10).to_string(), key(11).to_string(), key(12).to_string()],
                "addressTableLookups": [
                    { "accountKey": key(15).to_string(), "readonlyIndexes": [2], "writableIndexes": [1] },
                ],
                "header": {
                    "numReadonlySignedAccounts": 0,
                    "numReadonlyUnsignedAccounts": 1,
                    "numRequiredSignatures": 2,
                },
                "instructions": [
                    { "accounts": [], "data": "", "programIdIndex": 2, "stackHeight": null },
                    { "accounts": [0, 3, 4], "data": "2Uw1bpnsXxu3e", "programIdIndex": 1 },
                ],
                "recentBlockhash": key(60).to_string(),
            },
            "signatures": [signature(2).to_string(), signature(3).to_string()],
        },
        "version": 0,
    })
}

fn failed(error: Value) -> Value {
    let mut failed = swap();
    failed["meta"]["err"] = error;
    failed["meta"]["logMessages"] = Value::Null;
    failed["meta"]["innerInstructions"] = Value::Null;
    failed
}

fn tokens() -> TokenBalance {
    TokenBalance {
        account_index: 3,
        mint: key(20),
        owner: Some(key(21)),
        program: Some(key(22)),
        amount: 1_500_000,
        decimals: 6,
        shown_amount: "1.5".to_owned(),
    }
}

#[test]
fn a_block_is_what_the_stream_would_have_sent() {
    let block = convert(json!([vote(), swap()]), |_, _| true).expect("understood");
    assert_eq!(
        block.meta,
        BlockMeta {
            slot: 101,
            parent_slot: 99,
            blockhash: key(70).to_string(),
            parent_blockhash: key(69).to_string(),
            block_time: Some(1_767_225_600),
            block_height: Some(90),
            executed_transaction_count: 2,
        }
    );
    let [vote, swap] = &block.transactions[..] else {
        panic!("two transactions")
    };
    assert!(vote.is_vote && !swap.is_vote);
    assert_eq!(
        (vote.index, vote.fee, vote.logs_missing),
        (0, 10_000, false)
    );
    let expected = TransactionUpdate {
        slot: 101,
        index: 1,
        signature: signature(2),
        is_vote: false,
        error: None,
        // Static keys, loaded writable ones, loaded read-only ones.
        account_keys: [10, 11, 12, 13, 14].map(key).to_vec(),
        writable: Vec::new(),
        instructions: vec![
            Instruction {
                program_index: 2,
                accounts: Vec::new(),
                data: Vec::new(),
            },
            Instruction {
                program_index: 1,
                accounts: vec![0, 3, 4],
                data: bs58::decode("2Uw1bpnsXxu3e").into_vec().expect("base58"),
            },
        ],
        inner_instructions: vec![(
            1,
            vec![
                InnerInstruction {
                    program_index: 4,
                    accounts: vec![0, 3],
                    data: bs58::decode("3DTZbgwsozUF").into_vec().expect("base58"),
                    stack_height: Some(2),
                },
                InnerInstruction {
                    program_index: 1,
                    accounts: Vec::new(),
                    data: Vec::new(),
                    stack_height: None,
                },
            ],
        )],
        log_messages: vec!["Program log: one".to_owned(), "Log truncated".to_owned()],
        logs_missing: false,
        fee: 5000,
        compute_units: Some(31_000),
        pre_balances: vec![2],
        post_balances: vec![1],
        pre_token_balances: Vec::new(),
        post_token_balances: vec![tokens()],
    };
    assert_eq!(*swap, expected);
}

#[test]
fn transactions_that_are_not_wanted_keep_their_place_in_the_block() {
    let mentions = |keys: &[Pubkey], _: &[Pubkey]| keys.contains(&key(14));
    let block = convert(json!([vote(), vote(), swap()]), mentions).expect("understood");
    assert_eq!(block.meta.executed_transaction_count, 3);
    let places: Vec<_> = block.transactions.iter().map(|each| each.index).collect();
    assert_eq!(places, [2], "the loaded address is known, too");
}

#[test]
fn a_transaction_is_wanted_by_the_owner_of_a_token_account_that_it_does_not_name() {
    let owner = tokens().owner.expect("recorded");
    let owns = |keys: &[Pubkey], owners: &[Pubkey]| {
        assert!(!keys.contains(&owner));
        owners.contains(&owner)
    };
    let mut closed = swap();
    let meta = &mut closed["meta"];
    meta["preTokenBalances"] = meta["postTokenBalances"].take();
    let block = convert(json!([vote(), swap(), closed]), owns).expect("understood");
    let places: Vec<_> = block.transactions.iter().map(|each| each.index).collect();
    assert_eq!(places, [1, 2], "also of one that is closed");
    let shown = block
        .transactions
        .iter()
        .map(|each| each.token_owners().collect());
    let shown: Vec<Vec<_>> = shown.collect();
    assert_eq!(shown, [[&owner], [&owner]]);
}

#[test]
fn errors_are_in_the_words_of_the_stream() {
    let text = |error: Value| {
        let block = convert(json!([failed(error)]), |_, _| true).expect("understood");
        let [one] = &block.transactions[..] else {
            panic!("one transaction")
        };
        assert!(one.logs_missing && one.inner_instructions.is_empty());
        one.error.clone().expect("failed")
    };
    assert_eq!(
        text(json!({ "InstructionError": [1, { "Custom": 6000 }] })),
        "Error processing Instruction 1: custom program error: 0x1770"
    );
    assert_eq!(
        text(json!("AccountInUse")),
        TransactionError::AccountInUse.to_string()
    );
    assert_eq!(
        text(json!({ "InsufficientFundsForRent": { "account_index": 3 } })),
        TransactionError::InsufficientFundsForRent { account_index: 3 }.to_string()
    );
    let with_text = text(json!({ "InstructionError": [0, { "BorshIoError": "Unknown" }] }));
    assert_eq!(
        with_text,
        text(json!({ "InstructionError": [0, "BorshIoError"] }))
    );
    assert!(with_text.contains("Failed to serialize"), "{with_text}");
    assert_eq!(
        text(json!({ "FromTheFuture": 7 })),
        r#"unknown transaction error {"FromTheFuture":7}"#
    );
}

#[test]
fn a_block_that_is_not_whole_is_refused() {
    let mut without_result = swap();
    without_result["meta"] = Value::Null;
    let refused = convert(json!([without_result]), |_, _| true);
    assert!(
        matches!(refused, Err(BlockError::WithoutResult)),
        "{refused:?}"
    );

    let mut unsigned = swap();
    unsigned["transaction"]["signatures"] = json!([]);
    let refused = convert(json!([unsigned]), |_, _| true);
    assert!(matches!(refused, Err(BlockError::Unsigned)), "{refused:?}");

    let mut damaged = swap();
    damaged["transaction"]["message"]["accountKeys"][0] = json!("no key");
    assert!(matches!(
        convert(json!([damaged]), |_, _| true),
        Err(BlockError::Key(_))
    ));
    damaged = swap();
    damaged["meta"]["innerInstructions"][0]["instructions"][0]["data"] = json!("0OIl");
    assert!(matches!(
        convert(json!([damaged]), |_, _| true),
        Err(BlockError::Data(_))
    ));
}

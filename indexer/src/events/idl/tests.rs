//! IDLs: events of the guard and the exchange decoded, and files that are refused.

use sha2::{Digest, Sha256};
use solana_pubkey::pubkey;

use super::*;

const EXCHANGE_ADDRESS: Pubkey = pubkey!("CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C");

#[test]
fn the_guards_idl_describes_the_guard_and_decodes_like_its_interface() {
    let idls = Idls::built_in().expect("understood");
    let mut data = swap_guard_interface::GUARDED_SWAP_DISCRIMINATOR.to_vec();
    data.extend((1..=4u8).flat_map(|key| [key; 32]));
    data.extend([u64::MAX, 6, 7, 8].into_iter().flat_map(u64::to_le_bytes));
    let swap = swap_guard_interface::GuardedSwap::decode(&data).expect("an event");
    let (name, fields) = idls
        .decode(&swap_guard_interface::PROGRAM_ID, &data)
        .expect("decoded");
    assert_eq!(name, "GuardedSwap");
    let expected = serde_json::json!({
        "user": swap.user.to_string(),
        "pool": swap.pool.to_string(),
        "inputMint": swap.input_mint.to_string(),
        "outputMint": swap.output_mint.to_string(),
        "amountIn": swap.amount_in,
        "minimumOut": swap.minimum_out,
        "received": swap.received,
        "slot": swap.slot,
    });
    assert_eq!(fields, expected);

    let mut data = swap_guard_interface::SWAPPED_DISCRIMINATOR.to_vec();
    data.extend((1..=2u8).flat_map(|key| [key; 32]));
    data.extend([u64::MAX, 4].into_iter().flat_map(u64::to_le_bytes));
    let swap = swap_guard_interface::Swapped::decode(&data).expect("an event");
    let (name, fields) = idls
        .decode(&swap_guard_interface::PROGRAM_ID, &data)
        .expect("decoded");
    assert_eq!(name, "Swapped");
    let expected = serde_json::json!({
        "user": swap.user.to_string(),
        "pool": swap.pool.to_string(),
        "spent": swap.spent,
        "received": swap.received,
    });
    assert_eq!(fields, expected);
}

/// An event of the main chain: a swap of this pool through the first configuration.
fn swap_event() -> Vec<u8> {
    let key = |text: &str| text.parse::<Pubkey>().expect("an address").to_bytes();
    let mut data = vec![0x40, 0xc6, 0xcd, 0xe8, 0x26, 0x08, 0x71, 0xe2];
    data.extend(key("2VhaFEYL1exY86u8tTisfRjNwtCkX8bNbupHvSKzJuQJ"));
    let amounts = [4_041_195_065, 18_038_001_030, 851_111, 3_788_666, 0, 0];
    data.extend(amounts.into_iter().flat_map(u64::to_le_bytes));
    data.push(1);
    data.extend(key("So11111111111111111111111111111111111111112"));
    data.extend([9; 32]);
    data.extend([2_128_u64, 7].into_iter().flat_map(u64::to_le_bytes));
    data.push(1);
    data
}

#[test]
fn the_exchanges_swaps_have_fields_out_of_the_box() {
    let idls = Idls::load(&[], None).expect("understood");
    let data = swap_event();
    let (name, fields) = idls.decode(&EXCHANGE_ADDRESS, &data).expect("decoded");
    assert_eq!(name, "SwapEvent");
    let mut expected = serde_json::json!({
        "poolId": "2VhaFEYL1exY86u8tTisfRjNwtCkX8bNbupHvSKzJuQJ",
        "inputVaultBefore": 4_041_195_065_u64,
        "outputVaultBefore": 18_038_001_030_u64,
        "inputAmount": 851_111,
        "outputAmount": 3_788_666,
        "inputTransferFee": 0,
        "outputTransferFee": 0,
        "baseInput": true,
        "inputMint": "So11111111111111111111111111111111111111112",
        "outputMint": Pubkey::new_from_array([9; 32]).to_string(),
        "tradeFee": 2_128,
        "creatorFee": 7,
        "creatorFeeOnInput": true,
    });
    assert_eq!(fields, expected);

    // Before it had mints and fees.
    let (name, fields) = idls
        .decode(&EXCHANGE_ADDRESS, &data[..89])
        .expect("decoded");
    assert_eq!(name, "SwapEvent");
    let object = expected.as_object_mut().expect("an object");
    for newer in [
        "inputMint",
        "outputMint",
        "tradeFee",
        "creatorFee",
        "creatorFeeOnInput",
    ] {
        object.remove(newer);
    }
    assert_eq!(fields, expected);
    for length in (0..data.len()).filter(|length| *length != 89) {
        assert_eq!(idls.decode(&EXCHANGE_ADDRESS, &data[..length]), None);
    }
    assert_eq!(idls.decode(&swap_guard_interface::PROGRAM_ID, &data), None);
}

#[test]
fn the_exchanges_changes_of_liquidity_have_fields_out_of_the_box() {
    let idls = Idls::built_in().expect("understood");
    let mut data = Sha256::digest(b"event:LpChangeEvent")[..8].to_vec();
    data.extend([8; 32]);
    data.extend((1..=7).flat_map(u64::to_le_bytes));
    data.push(1);
    let (name, fields) = idls.decode(&EXCHANGE_ADDRESS, &data).expect("decoded");
    assert_eq!(name, "LpChangeEvent");
    let expected = serde_json::json!({
        "poolId": Pubkey::new_from_array([8; 32]).to_string(),
        "lpAmountBefore": 1,
        "token0VaultBefore": 2,
        "token1VaultBefore": 3,
        "token0Amount": 4,
        "token1Amount": 5,
        "token0TransferFee": 6,
        "token1TransferFee": 7,
        "changeType": 1,
    });
    assert_eq!(fields, expected);
}

#[test]
fn a_file_may_describe_the_exchange_anew() {
    let mut idls = Idls::built_in().expect("understood");
    let renamed = EXCHANGE[0].replace("pool_id", "pool");
    idls.register(&renamed, "a file").expect("registered");
    let data = swap_event();
    let (_, fields) = idls.decode(&EXCHANGE_ADDRESS, &data).expect("decoded");
    assert!(fields.get("pool").is_some() && fields.get("poolId").is_none());
    assert_eq!(idls.decode(&EXCHANGE_ADDRESS, &data[..89]), None);
}

#[test]
fn a_program_is_described_once() {
    let mut idls = Idls::built_in().expect("understood");
    assert!(matches!(
        idls.register(GUARD, "again"),
        Err(IdlError::Twice { .. })
    ));
}

#[test]
fn a_file_that_is_missing_or_no_idl_is_named() {
    let missing = Idls::load(&[PathBuf::from("/nowhere/x.json")], None).expect_err("missing");
    assert!(missing.to_string().contains("/nowhere/x.json"), "{missing}");
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("idl.json");
    fs::write(&path, "{}").expect("written");
    let wrong = Idls::load(std::slice::from_ref(&path), None).expect_err("no IDL");
    assert!(wrong.to_string().contains("idl.json"), "{wrong}");
}

//! Mints and token accounts: layouts, extensions, and bytes that are neither.

use proptest::prelude::*;

use super::*;

fn fee_mint() -> Mint {
    let schedule = |epoch, basis_points| TransferFee {
        epoch,
        maximum_fee: 5_000,
        basis_points,
    };
    Mint {
        transfer_fee: Some(TransferFeeConfig {
            older: schedule(1, 50),
            newer: schedule(2, 100),
        }),
        ..Mint::plain(6, 1_000_000)
    }
}

#[test]
fn mints_survive_a_round_trip() {
    let authority = Pubkey::from([1; 32]);
    for (mint, len) in [(Mint::plain(9, 7), MINT_LEN), (fee_mint(), 278)] {
        let data = mint.encode(&authority);
        assert_eq!(data.len(), len);
        assert_eq!(Mint::decode(&data), Ok(mint));
    }
}

#[test]
fn token_accounts_survive_a_round_trip() {
    let account = TokenAccount {
        mint: Pubkey::from([1; 32]),
        owner: Pubkey::from([2; 32]),
        amount: 3,
        frozen: false,
    };
    let kinds = [
        (TokenAccountKind::Plain, 165),
        (TokenAccountKind::Native { reserve: 2_039_280 }, 165),
        (TokenAccountKind::WithTransferFee, 178),
    ];
    for (kind, len) in kinds {
        let data = account.encode(kind);
        assert_eq!(data.len(), len);
        assert_eq!(TokenAccount::decode(&data), Ok(account));
    }
}

#[test]
fn an_extension_that_may_stop_a_transfer_is_reported() {
    const PAUSABLE: u16 = 26;
    let mut data = fee_mint().encode(&Pubkey::from([1; 32]));
    data.extend_from_slice(&PAUSABLE.to_le_bytes());
    data.extend_from_slice(&33u16.to_le_bytes());
    data.extend_from_slice(&[0; 33]);
    let mint = Mint::decode(&data).expect("a mint that may be paused is a mint");
    assert_eq!(mint.unsupported_extension, Some(PAUSABLE));
    assert!(mint.transfer_fee.is_some());
    let kinds: Vec<_> = mint.extensions().iter().collect();
    assert_eq!(kinds, [TRANSFER_FEE_CONFIG, PAUSABLE]);
}

#[test]
fn a_transfer_hook_stops_transfers_once_it_names_a_program() {
    let hooked = |value: &[u8]| {
        let mut data = fee_mint().encode(&Pubkey::from([1; 32]));
        data.extend_from_slice(&TRANSFER_HOOK.to_le_bytes());
        data.extend_from_slice(&u16::try_from(value.len()).expect("short").to_le_bytes());
        data.extend_from_slice(value);
        Mint::decode(&data).expect("a mint with a hook is a mint")
    };
    let (authority, program, none) = ([7_u8; 32], [8_u8; 32], [0_u8; 32]);
    let without = hooked(&[authority, none].concat());
    assert_eq!(without.unsupported_extension, None);
    assert_eq!(without.neutral_extensions(), 1);
    assert!(without.has_transfer_hook());
    assert!(!fee_mint().has_transfer_hook());
    let with = [none, program].concat();
    let longer = [&[0_u8; 64][..], &[0]].concat();
    for value in [&with[..], &longer, &authority, &[]] {
        let mint = hooked(value);
        assert_eq!(mint.unsupported_extension, Some(TRANSFER_HOOK), "{value:?}");
    }
}

#[test]
fn extensions_that_change_nothing_are_counted_and_stop_no_transfer() {
    let mut data = fee_mint().encode(&Pubkey::from([1; 32]));
    for kind in NEUTRAL_MINT_EXTENSIONS {
        data.extend_from_slice(&kind.to_le_bytes());
        data.extend_from_slice(&0u16.to_le_bytes());
    }
    let mint = Mint::decode(&data).expect("a mint");
    assert_eq!(mint.unsupported_extension, None);
    assert_eq!(
        usize::from(mint.neutral_extensions()),
        NEUTRAL_MINT_EXTENSIONS.len()
    );
    assert_eq!(
        mint.extensions().iter().count(),
        NEUTRAL_MINT_EXTENSIONS.len() + 1
    );
}

#[test]
fn a_permanent_delegate_and_confidential_transfers_of_others_stop_no_transfer() {
    const PERMANENT_DELEGATE: (u16, u16) = (12, 32);
    const CONFIDENTIAL_TRANSFER_MINT: (u16, u16) = (4, 65);
    for (kind, length) in [PERMANENT_DELEGATE, CONFIDENTIAL_TRANSFER_MINT] {
        let mut data = fee_mint().encode(&Pubkey::from([1; 32]));
        data.extend_from_slice(&kind.to_le_bytes());
        data.extend_from_slice(&length.to_le_bytes());
        data.extend(vec![1; usize::from(length)]);
        let mint = Mint::decode(&data).expect("a mint");
        assert_eq!(mint.unsupported_extension, None, "{kind}");
        assert_eq!(mint.neutral_extensions(), 1, "{kind}");
    }
}

#[test]
fn rejects_a_mint_taken_for_a_token_account_and_the_reverse() {
    let mint = fee_mint().encode(&Pubkey::from([1; 32]));
    assert!(TokenAccount::decode(&mint).is_err());
    let account = TokenAccount {
        mint: Pubkey::from([1; 32]),
        owner: Pubkey::from([2; 32]),
        amount: 3,
        frozen: false,
    };
    for kind in [TokenAccountKind::Plain, TokenAccountKind::WithTransferFee] {
        assert!(Mint::decode(&account.encode(kind)).is_err());
    }
}

#[test]
fn rejects_a_record_that_reaches_past_the_end() {
    let mut data = fee_mint().encode(&Pubkey::from([1; 32]));
    data.pop();
    assert!(matches!(
        Mint::decode(&data),
        Err(DecodeError::Length { .. })
    ));
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoders_panic(
        data in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let _ = Mint::decode(&data);
        let _ = TokenAccount::decode(&data);
    }
}

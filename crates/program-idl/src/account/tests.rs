//! IDL accounts: both kinds are read, and what is none, or too much, is refused.

use std::io::Write;

use flate2::{Compression, write::ZlibEncoder};

use super::*;

const EXCHANGE: Pubkey = pubkey!("CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C");

const TEXT: &str = "{\"address\":\"CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C\"}";

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).expect("packs");
    encoder.finish().expect("packs")
}

fn with_length(mut head: Vec<u8>, packed: &[u8], padding: usize) -> Vec<u8> {
    let length = u32::try_from(packed.len()).expect("short");
    head.extend(length.to_le_bytes());
    head.resize(head.len() + padding, 0);
    head.extend(packed);
    head
}

fn of_anchor(packed: &[u8]) -> Vec<u8> {
    let mut head = ANCHOR_DISCRIMINATOR.to_vec();
    head.extend([7; 32]);
    let mut account = with_length(head, packed, 0);
    // Accounts are made larger than what is in them.
    account.resize(account.len() + 100, 0);
    account
}

/// Encoding, packing, format, source.
fn of_metadata(kinds: [u8; 4], packed: &[u8]) -> Vec<u8> {
    let mut head = vec![METADATA_DISCRIMINATOR];
    head.extend(EXCHANGE.as_ref());
    head.extend([0; 34]);
    head.extend(METADATA_SEED);
    head.extend(kinds);
    with_length(head, packed, 5)
}

#[test]
fn the_exchanges_idl_is_where_anchor_puts_it() {
    let [metadata, anchor] = addresses(&EXCHANGE);
    let (base, _) = Pubkey::find_program_address(&[], &EXCHANGE);
    let with_seed = Pubkey::create_with_seed(&base, "anchor:idl", &EXCHANGE);
    assert_eq!(Ok(anchor), with_seed);
    assert!(!metadata.is_on_curve());
    assert_ne!(addresses(&METADATA_PROGRAM), [metadata, anchor]);
}

#[test]
fn texts_of_both_kinds_of_account_are_read() {
    let packed = zlib(TEXT.as_bytes());
    let read = |owner: Pubkey, data: &[u8]| text(&EXCHANGE, &owner, data);
    assert_eq!(read(EXCHANGE, &of_anchor(&packed)).as_deref(), Ok(TEXT));
    let accounts = [
        of_metadata([1, 2, 1, 0], &packed),
        of_metadata([0, 0, 1, 0], TEXT.as_bytes()),
        of_metadata([3, 2, 1, 0], STANDARD.encode(&packed).as_bytes()),
    ];
    for account in accounts {
        assert_eq!(read(METADATA_PROGRAM, &account).as_deref(), Ok(TEXT));
    }
}

#[test]
fn what_is_no_idl_account_is_refused() {
    let packed = zlib(TEXT.as_bytes());
    let anchor = of_anchor(&packed);
    let read = |owner: Pubkey, data: &[u8]| text(&EXCHANGE, &owner, data).expect_err("refused");
    let stranger = Pubkey::new_from_array([9; 32]);
    assert_eq!(read(stranger, &anchor), AccountError::Owner(stranger));
    for length in [0, 7, 8, 39, 43, 44 + packed.len() - 1] {
        assert_eq!(read(EXCHANGE, &anchor[..length]), AccountError::Layout);
    }
    let metadata = of_metadata([1, 2, 1, 0], &packed);
    for length in [0, 1, 95, metadata.len() - 1] {
        assert_eq!(
            read(METADATA_PROGRAM, &metadata[..length]),
            AccountError::Layout
        );
    }
    for kinds in [[1, 2, 2, 0], [1, 2, 1, 1], [1, 2, 1, 2]] {
        let account = of_metadata(kinds, &packed);
        assert_eq!(read(METADATA_PROGRAM, &account), AccountError::Elsewhere);
    }
    for account in [
        of_metadata([2, 2, 1, 0], &packed),
        of_metadata([1, 3, 1, 0], &packed),
        of_metadata([1, 1, 1, 0], &packed),
        of_metadata([3, 2, 1, 0], &packed),
        of_metadata([1, 0, 1, 0], &packed),
    ] {
        let refused = read(METADATA_PROGRAM, &account);
        assert!(matches!(refused, AccountError::Packing(_)), "{refused}");
    }
    let refused = read(EXCHANGE, &of_anchor(b"no zlib"));
    assert!(matches!(refused, AccountError::Packing(_)), "{refused}");
}

#[test]
fn a_text_that_is_a_thousand_times_as_long_as_what_is_packed_is_not_unpacked() {
    let longest = vec![b' '; MAX_TEXT_BYTES];
    let account = of_anchor(&zlib(&longest));
    let read = text(&EXCHANGE, &EXCHANGE, &account).expect("as long as may be");
    assert_eq!(read.len(), MAX_TEXT_BYTES);
    let bomb = zlib(&vec![b' '; 100 * MAX_TEXT_BYTES]);
    assert!(bomb.len() < MAX_TEXT_BYTES);
    let refused = text(&EXCHANGE, &EXCHANGE, &of_anchor(&bomb));
    assert_eq!(refused, Err(AccountError::TooLong));
    let refused = text(
        &EXCHANGE,
        &METADATA_PROGRAM,
        &of_metadata([0, 2, 1, 0], &bomb),
    );
    assert_eq!(refused, Err(AccountError::TooLong));
}

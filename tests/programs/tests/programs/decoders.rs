//! Decoders against arbitrary bytes and damaged accounts: none panics.

use cpmm::{
    Mint, TokenAccount, TokenAccountKind, TransferFee, TransferFeeConfig,
    fixtures::{blank_pool, published_config},
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use sluice_testkit::decoders::decode_everything;
use solana_pubkey::Pubkey;

/// Mutants tried. Each takes a few microseconds.
const MUTANTS: u32 = 200_000;

/// Any number; always the same, so that a failure can be looked at again.
const SEED: u64 = 1;

/// Values at which lengths, kinds and flags change their meaning.
const EDGES: [u8; 8] = [0, 1, 2, 3, 14, 0x7f, 0x80, 0xff];

/// One account of every kind and layout.
fn valid() -> Vec<Vec<u8>> {
    let key = Pubkey::from([7; 32]);
    let fee = TransferFee {
        epoch: 5,
        maximum_fee: 6,
        basis_points: 7,
    };
    let with_fee = Mint {
        transfer_fee: Some(TransferFeeConfig {
            older: fee,
            newer: fee,
        }),
        ..Mint::plain(6, 8)
    };
    let account = TokenAccount {
        mint: key,
        owner: key,
        amount: 9,
        frozen: false,
    };
    // A second extension behind the fee: a transfer hook.
    let hook = [14, 0, 64, 0].into_iter().chain([0; 64]);
    let hooked: Vec<u8> = with_fee.encode(&key).into_iter().chain(hook).collect();
    vec![
        blank_pool().encode(),
        published_config().encode(),
        Mint::plain(6, 8).encode(&key),
        with_fee.encode(&key),
        hooked,
        account.encode(TokenAccountKind::Plain),
        account.encode(TokenAccountKind::Native { reserve: 10 }),
        account.encode(TokenAccountKind::WithTransferFee),
    ]
}

fn mutate(data: &mut Vec<u8>, others: &[Vec<u8>], rng: &mut StdRng) {
    let at = rng.random_range(0..data.len().max(1));
    match rng.random_range(0..6) {
        0 => data.truncate(at),
        1 => data.extend((0..rng.random_range(1..80)).map(|_| *EDGES.choose(rng).unwrap_or(&0))),
        2 => {
            // The head of one kind on the tail of another.
            let other = others.choose(rng).map_or(&[][..], Vec::as_slice);
            data.truncate(at);
            data.extend_from_slice(other.get(at..).unwrap_or_default());
        }
        3 => {
            if let Some(byte) = data.get_mut(at) {
                *byte ^= 1 << rng.random_range(0..8);
            }
        }
        4 => {
            // Lengths and kinds of records are two bytes.
            let value = rng.random::<u16>().to_le_bytes();
            if let Some(two) = data.get_mut(at..at + 2) {
                two.copy_from_slice(&value);
            }
        }
        _ => {
            if let Some(byte) = data.get_mut(at) {
                *byte = *EDGES.choose(rng).unwrap_or(&0);
            }
        }
    }
}

#[test]
fn every_valid_account_is_understood() {
    for data in valid() {
        decode_everything(&data);
    }
}

#[test]
fn no_mutant_of_a_valid_account_makes_a_decoder_panic_or_read_back_something_else() {
    let valid = valid();
    let mut rng = StdRng::seed_from_u64(SEED);
    for _ in 0..MUTANTS {
        let mut data = valid.choose(&mut rng).cloned().unwrap_or_default();
        for _ in 0..rng.random_range(1..4) {
            mutate(&mut data, &valid, &mut rng);
        }
        decode_everything(&data);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_decoder_panic(data in proptest::collection::vec(any::<u8>(), 0..700)) {
        decode_everything(&data);
    }
}

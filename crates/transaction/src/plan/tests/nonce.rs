//! Tests of transactions with a durable nonce: where it stands, and how much longer they are.

use super::{sizes::rows, *};
use crate::size::Remedy;

/// The account and its sysvar, and the instruction; the system program too where nothing else names it. The authority is a
/// signer anyway.
const ADDED: std::ops::RangeInclusive<usize> = 74..=106;

fn nonce(authority: Pubkey) -> DurableNonce {
    DurableNonce {
        account: key(50),
        authority,
        value: Hash::new_from_array([51; 32]),
    }
}

#[test]
fn the_nonce_is_advanced_first_and_stands_where_the_blockhash_would() {
    for (name, row) in rows() {
        for version in TransactionVersion::ALL {
            for (fee_payer, authority) in [(1, 1), (21, 1), (21, 21)] {
                let without = TransactionPlan {
                    version,
                    fee_payer: key(fee_payer),
                    ..row.clone()
                };
                let with = TransactionPlan {
                    nonce: Some(nonce(key(authority))),
                    ..without.clone()
                };
                let (plain, built) = (unsigned_of(&without), unsigned_of(&with));
                let transaction: VersionedTransaction =
                    wincode::deserialize_exact(&built.bytes).expect("a transaction");
                let message = transaction.message;
                assert_eq!(*message.recent_blockhash(), nonce(key(1)).value, "{name}");
                assert_eq!(built.blockhash, nonce(key(1)).value);
                assert_eq!(built.instructions[0].name, "advanceNonce", "{name}");
                let first = &message.instructions()[0];
                let keys = message.static_account_keys();
                let program = keys[usize::from(first.program_id_index)];
                assert_eq!(program, solana_system_interface::program::ID, "{name}");
                let signers = usize::from(plain.bytes[0]);
                if version != TransactionVersion::V1 {
                    assert_eq!(usize::from(built.bytes[0]), signers, "{name}");
                }
                let added = built.bytes.len() - plain.bytes.len();
                assert!(ADDED.contains(&added), "{name}, {version:?}: {added}");
                let units = built.unit_limit - plain.unit_limit;
                assert_eq!(units, table::BUILTIN, "{name}");
            }
        }
    }
}

#[test]
fn without_the_nonce_a_transaction_may_fit() {
    let mut plan = plan(key(8), key(9));
    plan.nonce = Some(nonce(key(1)));
    let blockhash = Hash::new_from_array([7; 32]);
    // Eight bytes are the limit of what is loaded, which makes room first.
    plan.size_headroom = PACKET_LIMIT - unsigned_of(&plan).bytes.len() + 9;
    let remedies = plan.remedies(blockhash);
    assert!(remedies.contains(&Remedy::WithoutNonce), "{remedies:?}");
    plan.nonce = None;
    let remedies = plan.remedies(blockhash);
    assert!(!remedies.contains(&Remedy::WithoutNonce), "{remedies:?}");
}

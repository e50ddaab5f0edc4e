//! Transactions with a durable nonce: they land long after they were built, and of one value a single one.

use sluice_harness::wallet::{Asset, Before, Case, Form, Wallet, units::Units};
use sluice_testkit::{names::address, svm::Svm};
use sluice_transaction::{DurableNonce, TransactionVersion, compute_table::TokenKind};
use solana_account::Account;
use solana_pubkey::Pubkey;
use solana_signer::Signer;

/// Blocks after which no recent blockhash is taken any more.
const LIFE_OF_A_BLOCKHASH: usize = 150;

/// Length of a nonce account.
const LEN: usize = 80;

/// An initialized nonce account of the current version, with this value.
fn place(svm: &mut Svm, account: Pubkey, authority: Pubkey, value: [u8; 32]) {
    let mut data = [1u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
    data.extend(authority.to_bytes());
    data.extend(value);
    data.extend(5_000u64.to_le_bytes());
    assert_eq!(data.len(), LEN);
    let placed = Account {
        lamports: svm.rent(LEN),
        data,
        ..Account::default()
    };
    svm.set(account, placed);
}

/// The nonce as it is now.
fn read(svm: &Svm, account: Pubkey, authority: Pubkey) -> DurableNonce {
    let held = svm.account(account);
    DurableNonce::read(account, &held.owner, &held.data, [authority; 2]).expect("a nonce")
}

/// Every way of a swap that makes a transaction longer or needs an account of its own, in each version, with both wallets as
/// the authority.
fn cases() -> Vec<(Case, bool)> {
    let spl = Asset::Token(TokenKind::Spl);
    let ways = [
        Case::PLAIN,
        Case {
            input: Asset::Sol,
            form: Form::ExactOut,
            input_before: Before::Absent,
            ..Case::PLAIN
        },
        Case {
            output: Asset::Sol,
            output_before: Before::Holding(7),
            ..Case::PLAIN
        },
        Case {
            form: Form::TwoHops(spl, Before::Absent),
            output_before: Before::Absent,
            ..Case::PLAIN
        },
    ];
    let mut cases = Vec::new();
    for way in ways {
        for version in TransactionVersion::ALL {
            for (fee_payer, by_payer) in [(false, false), (true, false), (true, true)] {
                let case = Case {
                    version,
                    fee_payer,
                    ..way
                };
                cases.push((case, by_payer));
            }
        }
    }
    cases
}

#[test]
fn a_transaction_with_a_nonce_lands_late_and_once() {
    let mut svm = Svm::new();
    let units = Units::default();
    for (number, (case, by_payer)) in (1u8..).zip(cases()) {
        let mut wallet = Wallet::place(&mut svm, &units, &format!("wallet {number}"), case);
        let signer = if by_payer {
            &wallet.fee_payer
        } else {
            &wallet.keypair
        };
        let authority = signer.pubkey();
        let account = address(&format!("nonce {number}"));
        place(&mut svm, account, authority, [number; 32]);
        let nonce = read(&svm, account, authority);
        wallet.plan.nonce = Some(nonce);
        let (_, signed) = wallet.signed(svm.next_block());
        // Of the same value, for the case that the first is lost.
        wallet.plan.priority_fee += 1;
        let (_, another) = wallet.signed(svm.blockhash());
        for _ in 0..=LIFE_OF_A_BLOCKHASH {
            svm.next_block();
        }
        svm.submit(signed.clone())
            .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
        let next = read(&svm, account, authority);
        assert_ne!(next.value, nonce.value, "{case:?}");
        for spent in [signed, another] {
            let refused = format!("{:?}", svm.refusal(spent));
            assert_eq!(refused, "BlockhashNotFound", "{case:?}");
        }
        svm.next_block();
    }
}

#[test]
fn an_authority_that_does_not_sign_is_what_the_chain_refuses() {
    let mut svm = Svm::new();
    let mut wallet = Wallet::place(&mut svm, &Units::default(), "wallet", Case::PLAIN);
    let (account, stranger) = (address("nonce"), address("stranger"));
    place(&mut svm, account, stranger, [9; 32]);
    let held = svm.account(account);
    let signers = [wallet.keypair.pubkey(); 2];
    let fault = DurableNonce::read(account, &held.owner, &held.data, signers);
    assert!(fault.is_err(), "{fault:?}");
    wallet.plan.nonce = Some(DurableNonce {
        authority: wallet.keypair.pubkey(),
        ..read(&svm, account, stranger)
    });
    let (_, signed) = wallet.signed(svm.next_block());
    svm.next_block();
    let refused = format!("{:?}", svm.refusal(signed));
    assert_eq!(refused, "BlockhashNotFound");
}

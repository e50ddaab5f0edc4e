//! Bytes that transactions load, against the limit that they state.

use sluice_harness::wallet::{Case, Wallet, units::Units};
use sluice_testkit::svm::Svm;
use sluice_transaction::{TransactionVersion, loaded_bytes};
use solana_pubkey::{Pubkey, pubkey};

/// What the chain counts for an account beside its data.
const ACCOUNT: usize = 64;

/// Owner of programs whose code is in another account.
const UPGRADEABLE_LOADER: Pubkey = pubkey!("BPFLoaderUpgradeab1e11111111111111111111111");

/// The most that a limit may be over what is loaded, bytes: a quarter of what a transaction without one may load.
const MOST_OVER: usize = 16 * 1024 * 1024;

/// Every how many cases one is tried: the others load the same kinds of accounts.
const EACH: usize = 7;

/// Bytes of an account, and of the code of a program.
fn loaded(svm: &Svm, address: Pubkey) -> usize {
    let account = svm.account(address);
    if account.lamports == 0 {
        return 0;
    }
    let own = ACCOUNT + account.data.len();
    if account.owner != UPGRADEABLE_LOADER {
        return own;
    }
    let code = account
        .data
        .get(4..36)
        .and_then(|bytes| bytes.try_into().ok());
    let code: [u8; 32] = code.expect("a program names its code");
    own + ACCOUNT + svm.account(Pubkey::from(code)).data.len()
}

#[test]
fn a_transaction_may_load_all_that_it_needs_and_not_much_more() {
    let mut svm = Svm::new();
    let mut tried = 0;
    for case in Case::all().into_iter().step_by(EACH) {
        let wallet = Wallet::place(&mut svm, &Units::default(), "alice", case);
        let ran = wallet
            .run(&mut svm)
            .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
        let Some(limit) = ran.unsigned.loaded_bytes else {
            assert_ne!(case.version, TransactionVersion::V1);
            continue;
        };
        let limit = usize::try_from(limit).expect("it fits");
        let addresses = ran.unsigned.addresses();
        let needed: usize = addresses.iter().map(|address| loaded(&svm, *address)).sum();
        assert!(needed <= limit, "{limit} is short of {needed}: {case:?}");
        assert!(
            limit <= needed + MOST_OVER,
            "{limit} for {needed}: {case:?}"
        );
        tried += 1;
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn every_program_may_be_deployed_with_twice_its_code() {
    let svm = Svm::new();
    for (program, most) in loaded_bytes::programs(cpmm::ids::PROGRAM_ID) {
        let code = loaded(&svm, program);
        assert!(code > ACCOUNT, "{program} is not there");
        let most = usize::try_from(most).expect("it fits");
        assert!(code * 2 <= most, "{program}: {code} of {most}");
    }
}

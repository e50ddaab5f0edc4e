//! Balances of a wallet after a transaction, to the lamport, from every state before it.

use cpmm::{TokenAccount, ids};
use sluice_harness::wallet::{Asset, Before, Case, Wallet};
use sluice_testkit::svm::Svm;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::Swapped;

/// A wallet's belongings: lamports, and the balances of the two associated accounts and the named one; `None` where
/// there is no account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Belongings {
    lamports: u64,
    input: Option<u64>,
    output: Option<u64>,
}

fn tokens(svm: &Svm, address: Pubkey) -> Option<u64> {
    let account = svm.account(address);
    (account.lamports > 0).then(|| {
        TokenAccount::decode(&account.data)
            .expect("a token account")
            .amount
    })
}

fn belongings(svm: &Svm, wallet: &Wallet) -> Belongings {
    let accounts = &wallet.plan.accounts;
    Belongings {
        lamports: svm.account(wallet.keypair.pubkey()).lamports,
        input: tokens(svm, accounts.input_token_account),
        output: tokens(svm, accounts.output_token_account),
    }
}

#[test]
fn every_balance_is_what_the_answer_says() {
    let mut svm = Svm::new();
    for case in Case::all() {
        let wallet = Wallet::place(&mut svm, "alice", case);
        let before = belongings(&svm, &wallet);
        let ran = wallet
            .run(&mut svm)
            .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
        let swapped = ran
            .executed
            .events
            .iter()
            .find_map(|event| Swapped::decode(event));
        let received = swapped.expect("the guard says what was received").received;
        let after = belongings(&svm, &wallet);
        let costs = &ran.unsigned.costs;
        let kept_rent: u64 = costs
            .created
            .iter()
            .filter(|created| !created.closed)
            .map(|created| created.rent)
            .sum();
        let unwraps = case.wrap && case.output == Asset::Sol && !case.named_destination;
        let native_out = if unwraps { received } else { 0 };
        let spent = costs.base_fee + costs.priority_fee + costs.wrapped + kept_rent;
        assert_eq!(
            after.lamports,
            before.lamports - spent + native_out,
            "{case:?}"
        );
        // What was wrapped before is used first; an account that was not there is gone again.
        let wraps = case.wrap && case.input == Asset::Sol;
        let input = match case.input_before {
            Before::Absent => None,
            Before::Holding(held) => Some(held + costs.wrapped - wallet.plan.terms.amount_in),
        };
        assert_eq!(after.input, input, "{case:?}");
        assert_eq!(
            costs.wrapped > 0,
            wraps && before.input.unwrap_or(0) < wallet.plan.terms.amount_in
        );
        let output = if unwraps {
            before.output
        } else {
            Some(before.output.unwrap_or(0) + received)
        };
        assert_eq!(after.output, output, "{case:?}");
        assert_temporary_is_gone(&svm, &wallet, &ran.unsigned.instructions);
    }
}

/// Nothing that the transaction made for itself is left.
fn assert_temporary_is_gone(
    svm: &Svm,
    wallet: &Wallet,
    planned: &[sluice_transaction::PlannedInstruction],
) {
    for planned in planned {
        if planned.name == "createTemporaryAccount" {
            let address = planned.instruction.accounts[1].pubkey;
            assert_ne!(address, wallet.plan.accounts.output_token_account);
            assert_eq!(svm.account(address).lamports, 0);
        }
    }
}

#[test]
fn the_stated_lamports_suffice() {
    let mut svm = Svm::new();
    for case in Case::all() {
        let wallet = Wallet::place(&mut svm, "alice", case);
        let required = wallet
            .plan
            .transaction(svm.blockhash())
            .expect("it fits")
            .costs
            .required;
        let mut account = svm.account(wallet.keypair.pubkey());
        account.lamports = required;
        svm.set(wallet.keypair.pubkey(), account);
        wallet
            .run(&mut svm)
            .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
    }
}

#[test]
fn a_wrapped_account_that_appears_meanwhile_is_not_emptied() {
    let mut svm = Svm::new();
    let case = Case {
        input: Asset::Sol,
        output: Asset::Token(sluice_transaction::compute_table::TokenKind::Spl),
        input_before: Before::Absent,
        output_before: Before::Holding(0),
        named_destination: false,
        wrap: true,
        legacy: false,
    };
    let wallet = Wallet::place(&mut svm, "alice", case);
    // The transaction is planned for a wallet without wrapped SOL; then some arrives.
    let later = Case {
        input_before: Before::Holding(500),
        ..case
    };
    let _ = Wallet::place(&mut svm, "alice", later);
    let before = belongings(&svm, &wallet);
    assert_eq!(before.input, Some(500));
    let refused = wallet.run(&mut svm).err().expect("it fails");
    assert_eq!(refused.instruction, 2, "at the creation");
    assert_eq!(belongings(&svm, &wallet).input, Some(500));
    assert_eq!(wallet.plan.accounts.input_mint, ids::WRAPPED_SOL);
}

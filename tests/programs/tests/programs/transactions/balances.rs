//! Balances of a wallet after a transaction, to the lamport, from every state before it.

use cpmm::{TokenAccount, ids};
use sluice_harness::wallet::{AMOUNT_IN, Asset, Before, Case, Form, Wallet, units::Units};
use sluice_testkit::{names::address, svm::Svm};
use sluice_transaction::{
    Associated, PlatformRate, SolOutput, TransactionVersion, compute_table::TokenKind, costs::Costs,
};
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::Swapped;

/// Instructions of the compute budget, which come before all others.
const BUDGET: u8 = 3;

/// Lamports of the wallets of a transaction, and the balances of its token accounts; `None` where there is no account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Belongings {
    user: u64,
    /// Of another fee payer.
    fee_payer: Option<u64>,
    /// Of another receiver.
    receiver: Option<u64>,
    input: Option<u64>,
    middle: Option<u64>,
    output: Option<u64>,
    /// Of a platform: lamports, and the balance of its account of the input token.
    platform: Option<(u64, Option<u64>)>,
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
    let plan = &wallet.plan;
    let (first, last) = (plan.route.first(), plan.route.last());
    let user = wallet.keypair.pubkey();
    let lamports = |wallet: Pubkey| svm.account(wallet).lamports;
    Belongings {
        user: lamports(user),
        fee_payer: (plan.fee_payer != user).then(|| lamports(plan.fee_payer)),
        receiver: plan.receiver.map(lamports),
        input: tokens(svm, first.input_token_account),
        middle: plan
            .middle
            .and_then(|_| tokens(svm, last.input_token_account)),
        output: tokens(svm, last.output_token_account),
        platform: plan
            .platform_fee
            .map(|fee| (lamports(fee.wallet), tokens(svm, fee.account))),
    }
}

/// What of a fee arrives at the platform: a mint that withholds withholds of this transfer too.
fn arrives(case: &Case, fee: u64) -> u64 {
    match case.input {
        Asset::Token(TokenKind::Token2022WithFee) => fee - fee.div_ceil(100),
        Asset::Token(_) | Asset::Sol => fee,
    }
}

/// What belongs to whom after a transaction, by what the answer says of it.
fn expected(case: &Case, before: Belongings, costs: &Costs, swapped: &Swapped) -> Belongings {
    let (spent, received) = (swapped.spent, swapped.received);
    let mut after = before;
    let kept_rent: u64 = costs
        .created
        .iter()
        .filter(|created| created.rent_to.is_none())
        .map(|created| created.rent)
        .sum();
    let fees = costs.base_fee + costs.priority_fee + kept_rent;
    *after.fee_payer.as_mut().unwrap_or(&mut after.user) -= fees;
    // What is wrapped and not spent comes back.
    let wraps_apart = case.wrap
        && case.input == Asset::Sol
        && (case.form == Form::ExactOut || case.input_before == Before::Absent);
    if wraps_apart {
        after.user -= spent;
    } else {
        // What was wrapped before is used first.
        after.user -= costs.wrapped;
        after.input = before.input.map(|held| held + costs.wrapped - spent);
    }
    if let Some((lamports, tokens)) = &mut after.platform {
        let fee = case.platform.map_or(0, |(rate, _)| rate.of(AMOUNT_IN));
        if case.wrap && case.input == Asset::Sol {
            assert_eq!(costs.platform_fee, fee);
            *lamports += fee;
            after.user -= fee;
        } else {
            *tokens = Some(tokens.unwrap_or(0) + arrives(case, fee));
            after.input = after.input.map(|held| held - fee);
        }
    }
    if case.unwraps() {
        *after.receiver.as_mut().unwrap_or(&mut after.user) += received;
    } else {
        after.output = Some(before.output.unwrap_or(0) + received);
    }
    // What was between the pools stays as it was, and an account that keeps a withheld fee stays empty.
    if let Form::TwoHops(Asset::Token(TokenKind::Token2022WithFee), Before::Absent) = case.form {
        after.middle = Some(0);
    }
    after
}

#[test]
fn every_balance_is_what_the_answer_says() {
    let mut svm = Svm::new();
    let cases = Case::all();
    assert!(cases.len() > 2_000, "{}", cases.len());
    for case in cases {
        let wallet = Wallet::place(&mut svm, &Units::default(), "alice", case);
        let before = belongings(&svm, &wallet);
        let ran = wallet
            .run(&mut svm)
            .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
        let swapped = ran
            .executed
            .events
            .iter()
            .find_map(|event| Swapped::decode(event))
            .expect("the guard says what was spent and received");
        let terms = wallet.plan.terms;
        if case.form == Form::ExactOut {
            assert_eq!(swapped.received, terms.minimum_out, "{case:?}");
            assert!(swapped.spent < terms.amount_in, "{case:?}");
        } else {
            assert_eq!(swapped.spent, terms.amount_in, "{case:?}");
        }
        let costs = &ran.unsigned.costs;
        let expected = expected(&case, before, costs, &swapped);
        assert_eq!(belongings(&svm, &wallet), expected, "{case:?}");
        assert_temporary_is_gone(&svm, &wallet, &ran.unsigned.instructions);
    }
}

/// Rates that leave remainders, with and without an account that gets the fee.
fn charged() -> impl Iterator<Item = Case> {
    let platforms = [1, 37, 299].into_iter().flat_map(|rate| {
        let rate = PlatformRate::new(rate).expect("a rate");
        [Before::Absent, Before::Holding(5)].map(|before| (rate, before))
    });
    let platforms: Vec<_> = platforms.collect();
    let cases = Case::all().into_iter().enumerate();
    cases.map(move |(number, case)| Case {
        platform: Some(platforms[number % platforms.len()]),
        // The longest are those that need it.
        version: TransactionVersion::V1,
        ..case
    })
}

#[test]
fn a_platform_gets_its_fee_of_all_that_is_paid_and_the_rest_is_swapped() {
    let mut svm = Svm::new();
    let mut ran_cases = 0;
    for case in charged() {
        let wallet = Wallet::place(&mut svm, &Units::default(), "alice", case);
        let before = belongings(&svm, &wallet);
        let ran = wallet
            .run(&mut svm)
            .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
        let events = &ran.executed.events;
        let swapped = events.iter().find_map(|event| Swapped::decode(event));
        let swapped = swapped.expect("the guard says what was spent and received");
        let fee = wallet.plan.platform_fee.expect("a platform").amount;
        assert_eq!(wallet.plan.terms.amount_in + fee, AMOUNT_IN, "{case:?}");
        let expected = expected(&case, before, &ran.unsigned.costs, &swapped);
        assert_eq!(belongings(&svm, &wallet), expected, "{case:?}");
        ran_cases += 1;
    }
    assert!(ran_cases > 2_000, "{ran_cases}");
}

/// The parts that the instruction endpoint gives make a whole transaction, which closes no account that was there.
#[test]
fn a_swap_apart_is_whole_with_what_comes_beside_it() {
    let mut svm = Svm::new();
    let mut left_wrapped = 0;
    for case in Case::all().into_iter().chain(charged()).step_by(3) {
        let mut wallet = Wallet::place(&mut svm, &Units::default(), "alice", case);
        if let (Some(receiver), true) = (wallet.plan.receiver, case.unwraps()) {
            // Apart, SOL for another wallet goes to that wallet's own account.
            let associated = Associated::of(&receiver, &ids::WRAPPED_SOL, &ids::SPL_TOKEN);
            wallet.plan.route.last_mut().output_token_account = associated.address;
            wallet.plan.output.bump = associated.bump;
            wallet.plan.output.account = None;
            svm.set(associated.address, solana_account::Account::default());
        }
        let before = belongings(&svm, &wallet);
        let (apart, executed) = wallet
            .run_apart(&mut svm)
            .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
        let swapped = executed
            .events
            .iter()
            .find_map(|event| Swapped::decode(event));
        let swapped = swapped.expect("the guard says what was spent and received");
        assert!(
            executed.compute_units <= u64::from(apart.unit_limit),
            "{case:?}"
        );
        let after = belongings(&svm, &wallet);
        for (before, after) in [(before.input, after.input), (before.output, after.output)] {
            assert!(before.is_none() || after.is_some(), "{case:?}");
        }
        let fee = wallet.plan.platform_fee.map_or(0, |fee| fee.amount);
        if let Some((lamports, tokens)) = after.platform {
            let (lamports_before, tokens_before) = before.platform.expect("a platform");
            let arrived =
                lamports - lamports_before + tokens.unwrap_or(0) - tokens_before.unwrap_or(0);
            assert_eq!(arrived, arrives(&case, fee), "{case:?}");
        }
        if apart.sol_output == Some(SolOutput::Unwrapped) {
            assert_eq!(after.output, None, "{case:?}");
        } else {
            let received = after.output.expect("it arrived") - before.output.unwrap_or(0);
            assert_eq!(received, swapped.received, "{case:?}");
        }
        left_wrapped += usize::from(apart.sol_output == Some(SolOutput::LeftWrapped));
    }
    assert!(left_wrapped > 20, "{left_wrapped}");
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
            assert_ne!(address, wallet.plan.route.last().output_token_account);
            assert_eq!(svm.account(address).lamports, 0);
        }
    }
}

#[test]
fn all_is_wrapped_or_a_named_account_pays_where_that_is_asked_for() {
    let mut svm = Svm::new();
    let exact_in = |case: &Case| case.form == Form::ExactIn && case.input_before != Before::Absent;
    let mut ran_cases = [0; 2];
    for case in Case::all().into_iter().filter(exact_in) {
        for named_source in [false, true] {
            let applies = if named_source {
                case.input_before == Before::Holding(1_000_000)
            } else {
                case.wrap && case.input == Asset::Sol
            };
            if !applies {
                continue;
            }
            let mut wallet = Wallet::place(&mut svm, &Units::default(), "alice", case);
            let associated = wallet.plan.route.first().input_token_account;
            let held = svm.account(associated);
            if named_source {
                let source = address("alice's other account");
                svm.set(source, held.clone());
                wallet.plan.route.first_mut().input_token_account = source;
                wallet.plan.named_source = true;
            } else {
                wallet.plan.wraps_all = true;
            }
            let before = belongings(&svm, &wallet);
            let ran = wallet
                .run(&mut svm)
                .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
            let events = &ran.executed.events;
            let swapped = events.iter().find_map(|event| Swapped::decode(event));
            let swapped = swapped.expect("the guard says what was spent and received");
            let costs = &ran.unsigned.costs;
            let after = belongings(&svm, &wallet);
            assert_eq!(after, expected(&case, before, costs, &swapped), "{case:?}");
            if named_source {
                assert_eq!(svm.account(associated), held, "{case:?}");
            } else {
                assert_eq!(after.input, before.input, "{case:?}");
            }
            ran_cases[usize::from(named_source)] += 1;
        }
    }
    assert!(ran_cases.iter().all(|count| *count > 20), "{ran_cases:?}");
}

/// Cases in which SOL and the rent of the account that it is in belong to different wallets.
fn parted() -> Vec<Case> {
    let parts = |case: &Case| {
        let pays_out = case.unwraps() && (case.receiver || case.fee_payer);
        let gives_rest = case.wrap && case.input == Asset::Sol && case.form == Form::ExactOut;
        pays_out || (gives_rest && case.fee_payer)
    };
    Case::all().into_iter().filter(parts).collect()
}

#[test]
fn without_unwrap_lamports_the_wallet_that_gets_the_sol_gets_the_rent() {
    let mut svm = Svm::with_older_token_program();
    let cases = parted();
    assert!(cases.len() > 100, "{}", cases.len());
    let mut with_rent = 0;
    for case in cases {
        let mut wallet = Wallet::place(&mut svm, &Units::default(), "alice", case);
        wallet.plan.unwraps_lamports = false;
        let before = belongings(&svm, &wallet);
        let ran = wallet
            .run(&mut svm)
            .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
        let swapped = ran
            .executed
            .events
            .iter()
            .find_map(|event| Swapped::decode(event));
        let costs = &ran.unsigned.costs;
        let swapped = swapped.expect("the guard says what was spent and received");
        let mut expected = expected(&case, before, costs, &swapped);
        let given = costs.created.iter().find(|created| {
            created
                .rent_to
                .is_some_and(|wallet_paid| wallet_paid != wallet.plan.fee_payer)
        });
        if let Some(given) = given {
            *expected.fee_payer.as_mut().unwrap_or(&mut expected.user) -= given.rent;
            let to_receiver = given.rent_to == wallet.plan.receiver;
            let receiver = expected.receiver.as_mut().filter(|_| to_receiver);
            *receiver.unwrap_or(&mut expected.user) += given.rent;
            with_rent += 1;
        }
        if case.unwraps() {
            assert_eq!(
                ran.unsigned.sol_output,
                Some(SolOutput::UnwrappedWithRent),
                "{case:?}"
            );
        }
        assert_eq!(belongings(&svm, &wallet), expected, "{case:?}");
    }
    assert!(with_rent > 100, "{with_rent}");
}

#[test]
fn an_older_token_program_refuses_unwrap_lamports() {
    let mut svm = Svm::with_older_token_program();
    let mut wallet = Wallet::place(&mut svm, &Units::default(), "alice", parted()[0]);
    wallet.plan.unit_headroom = 300_000;
    let before = belongings(&svm, &wallet);
    let refused = wallet.run(&mut svm).err().expect("it fails");
    assert!(
        refused
            .logs
            .iter()
            .any(|line| line.contains("Invalid instruction")),
        "{:#?}",
        refused.logs
    );
    let fee = wallet
        .plan
        .transaction(svm.blockhash())
        .expect("it fits")
        .costs;
    let mut after = before;
    *after.fee_payer.as_mut().unwrap_or(&mut after.user) -= fee.base_fee + fee.priority_fee;
    assert_eq!(belongings(&svm, &wallet), after);
}

#[test]
fn the_stated_lamports_suffice() {
    let mut svm = Svm::new();
    for case in Case::all().into_iter().chain(charged()) {
        let wallet = Wallet::place(&mut svm, &Units::default(), "alice", case);
        let costs = wallet
            .plan
            .transaction(svm.blockhash())
            .expect("it fits")
            .costs;
        let user = wallet.keypair.pubkey();
        let mut reduce = |wallet: Pubkey, lamports| {
            let mut account = svm.account(wallet);
            account.lamports = lamports;
            svm.set(wallet, account);
        };
        if wallet.plan.fee_payer != user {
            reduce(user, costs.required_of_user);
        }
        reduce(wallet.plan.fee_payer, costs.required);
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
        input_before: Before::Absent,
        ..Case::PLAIN
    };
    let wallet = Wallet::place(&mut svm, &Units::default(), "alice", case);
    // The transaction is planned for a wallet without wrapped SOL; then some arrives.
    let later = Case {
        input_before: Before::Holding(500),
        ..case
    };
    let _ = Wallet::place(&mut svm, &Units::default(), "alice", later);
    let before = belongings(&svm, &wallet);
    assert_eq!(before.input, Some(500));
    let refused = wallet.run(&mut svm).err().expect("it fails");
    assert_eq!(refused.instruction, BUDGET, "at the creation");
    assert_eq!(belongings(&svm, &wallet).input, Some(500));
    assert_eq!(wallet.plan.route.first().input_mint, ids::WRAPPED_SOL);
}

/// Between two hops too: an account that the transaction would close after itself is the user's, once it is there.
#[test]
fn a_middle_account_that_appears_meanwhile_is_not_emptied() {
    for middle in [Asset::Sol, Asset::Token(TokenKind::Spl)] {
        let mut svm = Svm::new();
        let through = |held| Case {
            form: Form::TwoHops(middle, held),
            ..Case::PLAIN
        };
        let wallet = Wallet::place(
            &mut svm,
            &Units::default(),
            "alice",
            through(Before::Absent),
        );
        let _ = Wallet::place(
            &mut svm,
            &Units::default(),
            "alice",
            through(Before::Holding(500)),
        );
        let before = belongings(&svm, &wallet);
        assert_eq!(before.middle, Some(500), "{middle:?}");
        let refused = wallet.run(&mut svm).err().expect("it fails");
        assert_eq!(refused.instruction, BUDGET, "{middle:?}: at the creation");
        let after = belongings(&svm, &wallet);
        let tokens = |all: Belongings| [all.input, all.middle, all.output];
        assert_eq!(tokens(after), tokens(before), "{middle:?}");
    }
}

//! Table of compute units against the units that the chain counts.
//!
//! With `CPMM_SO` the exchange is that binary, and the rows are those for Raydium.

use cpmm::{Direction, MINT_LEN, Mint, PerToken, TOKEN_ACCOUNT_LEN, TokenProgram, ids};
use sluice_harness::wallet::{Asset, Before, Case, Wallet, exchange};
use sluice_testkit::{
    pool::{PoolSpec, guarded_swap},
    random_swaps::{RandomSwaps, Terms},
    svm::Svm,
};
use sluice_transaction::compute_table::{self, TokenKind, TokenShape};
use solana_pubkey::Pubkey;

/// The most that a limit may be over what was used, percent.
const MOST_OVER: u64 = 15;

/// Names of wallets, and with them the bumps of their token accounts.
const WALLETS: [&str; 8] = [
    "alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi",
];

/// Wallets enough for some whose addresses take eight tries; each try is as likely to fail as not.
const MANY_WALLETS: usize = 300;

/// Random pools that are tried.
const RANDOM_SWAPS: usize = 20_000;

/// The neutral extensions, by record type and length of the value. Token metadata is as long as its texts.
const NEUTRAL: [(u16, u16); 9] = [
    (3, 32),
    (10, 52),
    (18, 64),
    (19, 300),
    (20, 64),
    (21, 80),
    (22, 64),
    (23, 72),
    (25, 56),
];

#[track_caller]
fn assert_fits(limit: u32, used: u64, what: &dyn std::fmt::Debug) {
    let limit = u64::from(limit);
    assert!(limit >= used, "{limit} is short of {used}: {what:?}");
    assert!(
        limit * 100 <= used * (100 + MOST_OVER),
        "{limit} is more than {MOST_OVER} % over {used}: {what:?}"
    );
}

#[test]
fn every_row_of_the_table_is_enough_and_not_much_more() {
    let mut svm = Svm::new();
    for case in Case::all() {
        for name in WALLETS {
            let wallet = Wallet::place(&mut svm, name, case);
            let ran = wallet
                .run(&mut svm)
                .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
            assert_fits(ran.unsigned.unit_limit, ran.executed.compute_units, &case);
        }
    }
}

#[test]
fn the_limit_holds_for_wallets_whose_addresses_take_many_tries() {
    let mut svm = Svm::new();
    let case = Case {
        input: Asset::Sol,
        output: Asset::Token(TokenKind::Spl),
        input_before: Before::Absent,
        output_before: Before::Absent,
        named_destination: false,
        wrap: true,
        legacy: false,
    };
    let mut lowest = u8::MAX;
    for n in 0..MANY_WALLETS {
        let wallet = Wallet::place(&mut svm, &format!("wallet {n}"), case);
        lowest = lowest
            .min(wallet.plan.input.bump)
            .min(wallet.plan.output.bump);
        let ran = wallet
            .run(&mut svm)
            .unwrap_or_else(|refused| panic!("{n}: {:#?}", refused.logs));
        assert_fits(ran.unsigned.unit_limit, ran.executed.compute_units, &n);
    }
    assert!(lowest <= 248, "no address took many tries: {lowest}");
}

#[test]
fn the_limit_holds_for_mints_with_extensions() {
    let mut svm = Svm::new();
    for kind in [TokenKind::Token2022, TokenKind::Token2022WithFee] {
        for count in 0..=NEUTRAL.len() {
            for fee_first in [true, false] {
                for output_before in [Before::Absent, Before::Holding(0)] {
                    let case = Case {
                        input: Asset::Token(kind),
                        output: Asset::Token(kind),
                        input_before: Before::Holding(1_000_000),
                        output_before,
                        named_destination: false,
                        wrap: true,
                        legacy: false,
                    };
                    let wallet = extended(&mut svm, case, count, fee_first);
                    let ran = wallet
                        .run(&mut svm)
                        .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
                    let limit = ran.unsigned.unit_limit;
                    assert_fits(limit, ran.executed.compute_units, &(count, fee_first, case));
                }
            }
        }
    }
}

/// A wallet before a pool whose mints carry the first `count` neutral extensions.
fn extended(svm: &mut Svm, case: Case, count: usize, fee_first: bool) -> Wallet {
    let mut wallet = Wallet::place(svm, "alice", case);
    let mut shape = |mint: Pubkey| {
        let data = with_extensions(&svm.account(mint).data, count, fee_first);
        let decoded = Mint::decode(&data).expect("a mint");
        svm.place(mint, ids::TOKEN_2022, data);
        TokenShape::of(TokenProgram::Token2022, &decoded)
    };
    wallet.plan.input.token = shape(wallet.plan.accounts.input_mint);
    wallet.plan.output.token = shape(wallet.plan.accounts.output_mint);
    assert_eq!(
        usize::from(wallet.plan.input.token.neutral_extensions),
        count
    );
    wallet
}

fn with_extensions(mint: &[u8], count: usize, fee_first: bool) -> Vec<u8> {
    let mut data = mint.to_vec();
    if count == 0 {
        return data;
    }
    if data.len() == MINT_LEN {
        data.resize(TOKEN_ACCOUNT_LEN, 0);
        data.push(1);
    }
    let fee = data.split_off(TOKEN_ACCOUNT_LEN + 1);
    let neutral = NEUTRAL[..count].iter().flat_map(|(kind, len)| {
        let head = [kind.to_le_bytes(), len.to_le_bytes()].concat();
        head.into_iter().chain(vec![0; usize::from(*len)])
    });
    if fee_first {
        data.extend(&fee);
        data.extend(neutral);
    } else {
        data.extend(neutral);
        data.extend(&fee);
    }
    data
}

#[test]
fn the_swap_alone_stays_within_its_limit_in_random_pools() {
    let mut svm = Svm::new();
    let mut paid = 0;
    for swap in RandomSwaps::from_seed(5).take(RANDOM_SWAPS) {
        svm.set_time(swap.clock.epoch, swap.clock.unix_timestamp);
        let pool = svm.open("random", &PoolSpec::like(swap.snapshot.clone()));
        let Terms::ExactIn { amount_in, .. } = swap.terms else {
            panic!("{swap:?} is of another row");
        };
        let amounts = match swap.direction {
            Direction::ZeroForOne => PerToken::new(amount_in, 0),
            Direction::OneForZero => PerToken::new(0, amount_in),
        };
        let user = svm.fund("trader", &pool, amounts);
        let accounts = pool.swap_accounts(&user, swap.direction);
        let instruction = guarded_swap(&accounts, amount_in, 1);
        let Ok(executed) = svm.send(&[instruction], &[&user.keypair]) else {
            // What the chain refuses is no matter of units.
            continue;
        };
        paid += 1;
        let shape = |token_0: bool| {
            let (programs, mints) = (&swap.snapshot.pool.token_programs, &swap.snapshot.mints);
            let (program, mint) = if token_0 {
                (programs.token_0, &mints.token_0)
            } else {
                (programs.token_1, &mints.token_1)
            };
            TokenShape::of(TokenProgram::from_id(&program).expect("one of two"), mint)
        };
        let forward = swap.direction == Direction::ZeroForOne;
        let limit = compute_table::guarded_swap(exchange(), shape(forward), shape(!forward), false);
        assert_fits(limit, executed.compute_units, &swap);
    }
    assert!(paid > RANDOM_SWAPS / 4, "only {paid} were paid");
}

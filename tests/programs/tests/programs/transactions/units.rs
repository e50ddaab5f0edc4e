//! Table of compute units against the units that the chain counts.
//!
//! With `CPMM_SO` the exchange is that binary, and the rows are those for Raydium.

use cpmm::{Direction, MINT_LEN, Mint, PerToken, TOKEN_ACCOUNT_LEN, TokenProgram, ids};
use sluice_harness::wallet::{Asset, Before, Case, Form, Wallet, exchange};
use sluice_testkit::{
    pool::{PoolSpec, guarded_exact_out, guarded_swap},
    random_swaps::{RandomExactOutSwaps, RandomSwaps, Swap, Terms},
    svm::Svm,
};
use sluice_transaction::compute_table::{self, SwapTokens, TokenKind, TokenShape};
use solana_pubkey::Pubkey;

/// The most that a limit may be over what was used, percent.
const MOST_OVER: u64 = 15;

/// The same for an exact output in random pools, whose arithmetic varies more.
const MOST_OVER_EXACT_OUT: u64 = 25;

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
fn assert_fits(limit: u32, used: u64, most_over: u64, what: &dyn std::fmt::Debug) {
    let limit = u64::from(limit);
    assert!(limit >= used, "{limit} is short of {used}: {what:?}");
    assert!(
        limit * 100 <= used * (100 + most_over),
        "{limit} is more than {most_over} % over {used}: {what:?}"
    );
}

#[test]
fn every_row_of_the_table_is_enough_and_not_much_more() {
    let mut svm = Svm::new();
    for case in Case::all() {
        let names = if case.form == Form::ExactIn && !case.receiver && !case.fee_payer {
            &WALLETS[..]
        } else {
            // The others differ in what they execute, and not in how addresses are found.
            &WALLETS[..1]
        };
        for name in names {
            let wallet = Wallet::place(&mut svm, name, case);
            let ran = wallet
                .run(&mut svm)
                .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
            assert_fits(
                ran.unsigned.unit_limit,
                ran.executed.compute_units,
                MOST_OVER,
                &case,
            );
        }
    }
}

#[test]
fn the_limit_holds_for_wallets_whose_addresses_take_many_tries() {
    let mut svm = Svm::new();
    let case = Case {
        input: Asset::Sol,
        input_before: Before::Absent,
        output_before: Before::Absent,
        ..Case::PLAIN
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
        assert_fits(
            ran.unsigned.unit_limit,
            ran.executed.compute_units,
            MOST_OVER,
            &n,
        );
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
                        output_before,
                        ..Case::PLAIN
                    };
                    let wallet = extended(&mut svm, case, count, fee_first);
                    let ran = wallet
                        .run(&mut svm)
                        .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
                    let limit = ran.unsigned.unit_limit;
                    assert_fits(
                        limit,
                        ran.executed.compute_units,
                        MOST_OVER,
                        &(count, fee_first, case),
                    );
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
    wallet.plan.input.token = shape(wallet.plan.route.first().input_mint);
    wallet.plan.output.token = shape(wallet.plan.route.last().output_mint);
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
    assert_random_swaps_fit(RandomSwaps::from_seed(5), MOST_OVER);
}

#[test]
fn the_exact_output_alone_stays_within_its_limit_in_random_pools() {
    assert_random_swaps_fit(RandomExactOutSwaps::from_seed(5), MOST_OVER_EXACT_OUT);
}

fn assert_random_swaps_fit(swaps: impl Iterator<Item = Swap>, most_over: u64) {
    let mut svm = Svm::new();
    let mut paid = 0;
    for swap in swaps.take(RANDOM_SWAPS) {
        svm.set_time(swap.clock.epoch, swap.clock.unix_timestamp);
        let pool = svm.open("random", &PoolSpec::like(swap.snapshot.clone()));
        let offered = match swap.terms {
            Terms::ExactIn { amount_in, .. } => amount_in,
            Terms::ExactOut { .. } => u64::MAX,
        };
        let amounts = match swap.direction {
            Direction::ZeroForOne => PerToken::new(offered, 0),
            Direction::OneForZero => PerToken::new(0, offered),
        };
        let user = svm.fund("trader", &pool, amounts);
        let accounts = pool.swap_accounts(&user, swap.direction);
        let forward = swap.direction == Direction::ZeroForOne;
        let (input, output) = (shape(&swap, forward), shape(&swap, !forward));
        let (instruction, tokens) = match swap.terms {
            Terms::ExactIn { amount_in, .. } => {
                let swap = guarded_swap(&accounts, amount_in, 1);
                (swap, SwapTokens::ExactIn(input, output))
            }
            Terms::ExactOut { amount_out, .. } => {
                let swap = guarded_exact_out(&accounts, u64::MAX, amount_out);
                (swap, SwapTokens::ExactOut(input, output))
            }
        };
        let Ok(executed) = svm.send(&[instruction], &[&user.keypair]) else {
            // What the chain refuses is no matter of units.
            continue;
        };
        paid += 1;
        let limit = compute_table::guarded_swap(exchange(), tokens, false);
        assert_fits(limit, executed.compute_units, most_over, &swap);
    }
    assert!(paid > RANDOM_SWAPS / 4, "only {paid} were paid");
}

fn shape(swap: &Swap, token_0: bool) -> TokenShape {
    let (programs, mints) = (&swap.snapshot.pool.token_programs, &swap.snapshot.mints);
    let (program, mint) = if token_0 {
        (programs.token_0, &mints.token_0)
    } else {
        (programs.token_1, &mints.token_1)
    };
    TokenShape::of(TokenProgram::from_id(&program).expect("one of two"), mint)
}

//! Table of compute units against the units that the chain counts.
//!
//! With `CPMM_SO` the exchange is that binary, and calibration begins with the profile of Raydium's.

use std::sync::Arc;

use cpmm::{
    Direction, MINT_LEN, Mint, PerToken, PoolSnapshot, TOKEN_ACCOUNT_LEN, TokenProgram, ids,
};
use sluice_harness::wallet::{
    Asset, Before, Case, Form, Wallet,
    units::{Units, operands, snapshot},
};
use sluice_testkit::{
    pool::PoolSpec,
    random_swaps::{RandomExactOutSwaps, RandomSwaps, Swap, Terms},
    svm::{EPOCH, Executed, Svm, UNIX_TIMESTAMP},
};
use sluice_transaction::{
    PlatformRate, Route, SwapTerms, TransactionVersion,
    compute_table::{TokenKind, TokenShape},
};
use solana_pubkey::Pubkey;

/// The most that a limit may be over what was used, percent.
const MOST_OVER: u64 = 15;

/// Swaps after which limits must fit, whatever the build of the exchange.
const TAUGHT: usize = 300;

/// Names of wallets, and with them the bumps of their token accounts.
const WALLETS: [&str; 8] = [
    "alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi",
];

/// Wallets enough for some whose addresses take eight tries; each try is as likely to fail as not.
const MANY_WALLETS: usize = 300;

/// Pools of different addresses that take turns.
const RANDOM_POOLS: usize = 50;

/// Random swaps of an exact input that are tried. The limits that are nearest to what was used and farthest from it are among the first
/// three thousand, and the last kind of pool that is met comes after six.
const EXACT_IN_SWAPS: usize = 8_000;

/// Random swaps of an exact output that are tried: the limit that is nearest to what was used is among the last of them.
const EXACT_OUT_SWAPS: usize = 20_000;

/// The neutral extensions, by record type and length of the value. Token metadata is as long as its texts.
const NEUTRAL: [(u16, u16); 12] = [
    (3, 32),
    (4, 65),
    (10, 52),
    (12, 32),
    // A hook that names no program, as all of it is zero.
    (14, 64),
    (18, 64),
    (19, 300),
    (20, 64),
    (21, 80),
    (22, 64),
    (23, 72),
    (25, 56),
];

/// Those of them that a transfer looks for: the permanent delegate and the hook.
const LOOKED_FOR: [u16; 2] = [12, 14];

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
    let units = taught(&mut svm);
    for case in Case::all() {
        let names = if case.form == Form::ExactIn && !case.receiver && !case.fee_payer {
            &WALLETS[..]
        } else {
            // The others differ in what they execute, and not in how addresses are found.
            &WALLETS[..1]
        };
        for name in names {
            let wallet = Wallet::place(&mut svm, &units, name, case);
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
fn a_platforms_fee_is_within_the_table_too() {
    let mut svm = Svm::new();
    let units = taught(&mut svm);
    let rate = PlatformRate::new(37).expect("a rate");
    for case in Case::all().into_iter().filter(|case| !case.receiver) {
        for before in [Before::Absent, Before::Holding(5)] {
            let case = Case {
                platform: Some((rate, before)),
                version: TransactionVersion::V1,
                ..case
            };
            let wallet = Wallet::place(&mut svm, &units, "alice", case);
            let ran = wallet
                .run(&mut svm)
                .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
            let (limit, used) = (ran.unsigned.unit_limit, ran.executed.compute_units);
            assert_fits(limit, used, MOST_OVER, &case);
        }
    }
}

#[test]
fn the_limit_holds_for_wallets_whose_addresses_take_many_tries() {
    let mut svm = Svm::new();
    let units = taught(&mut svm);
    let case = Case {
        input: Asset::Sol,
        input_before: Before::Absent,
        output_before: Before::Absent,
        ..Case::PLAIN
    };
    let mut lowest = u8::MAX;
    for n in 0..MANY_WALLETS {
        let wallet = Wallet::place(&mut svm, &units, &format!("wallet {n}"), case);
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
    let units = taught(&mut svm);
    for kind in [TokenKind::Token2022, TokenKind::Token2022WithFee] {
        for form in [Form::ExactIn, Form::ExactOut] {
            for output_before in [Before::Absent, Before::Holding(0)] {
                let rate = PlatformRate::new(37).expect("a rate");
                let case = Case {
                    platform: Some((rate, output_before)),
                    version: TransactionVersion::V1,
                    input: Asset::Token(kind),
                    output: Asset::Token(kind),
                    form,
                    output_before,
                    ..Case::PLAIN
                };
                for records in Records::all() {
                    assert_fits_with(&mut svm, &units, case, &records);
                }
            }
        }
    }
}

fn assert_fits_with(svm: &mut Svm, units: &Units, case: Case, records: &Records) {
    let wallet = extended(svm, units, case, records);
    let ran = wallet
        .run(svm)
        .unwrap_or_else(|refused| panic!("{case:?}: {:#?}", refused.logs));
    let what = (records, case);
    let (limit, used) = (ran.unsigned.unit_limit, ran.executed.compute_units);
    assert_fits(limit, used, MOST_OVER, &what);
    if case.output_before == Before::Absent {
        // What its rent was stated for.
        let account = wallet.plan.route.last().output_token_account;
        let length = wallet.plan.output.token.account_len();
        assert_eq!(svm.account(account).data.len(), length, "{what:?}");
    }
}

/// Records of a mint beside its transfer fee, by type and length, and how many of them are before the fee's.
#[derive(Debug)]
struct Records {
    neutral: Vec<(u16, u16)>,
    before_fee: usize,
}

impl Records {
    /// Every number of extensions, in orders in which searches pass by few and by many: with the ones that are looked for
    /// first, last, and not at all, and with the fee's before and behind them.
    fn all() -> Vec<Self> {
        let is_looked_for = |(kind, _): &(u16, u16)| LOOKED_FOR.contains(kind);
        let (found, others): (Vec<_>, Vec<_>) = NEUTRAL.into_iter().partition(is_looked_for);
        let orders = [
            [&found[..], &others].concat(),
            [&others[..], &found].concat(),
            others,
        ];
        let mut all = Vec::new();
        for order in orders {
            for count in 0..=order.len() {
                for before_fee in [0, count] {
                    let neutral = order[..count].to_vec();
                    all.push(Self {
                        neutral,
                        before_fee,
                    });
                }
            }
        }
        all
    }
}

/// A wallet before a pool whose mints carry these extensions.
fn extended(svm: &mut Svm, units: &Units, case: Case, records: &Records) -> Wallet {
    let mut wallet = Wallet::place(svm, units, "alice", case);
    let mut shape = |mint: Pubkey| {
        let data = with_extensions(&svm.account(mint).data, records);
        let decoded = Mint::decode(&data).expect("a mint");
        svm.place(mint, ids::TOKEN_2022, data);
        TokenShape::of(TokenProgram::Token2022, &decoded)
    };
    wallet.plan.input.token = shape(wallet.plan.route.first().input_mint);
    wallet.plan.output.token = shape(wallet.plan.route.last().output_mint);
    wallet.allow(svm, units);
    assert_eq!(
        usize::from(wallet.plan.input.token.neutral_extensions),
        records.neutral.len()
    );
    wallet
}

fn with_extensions(mint: &[u8], records: &Records) -> Vec<u8> {
    let mut data = mint.to_vec();
    if records.neutral.is_empty() {
        return data;
    }
    if data.len() == MINT_LEN {
        data.resize(TOKEN_ACCOUNT_LEN, 0);
        data.push(1);
    }
    let fee = data.split_off(TOKEN_ACCOUNT_LEN + 1);
    let written = |records: &[(u16, u16)]| -> Vec<u8> {
        let records = records.iter();
        let written = records.map(|(kind, len)| {
            let head = [kind.to_le_bytes(), len.to_le_bytes()].concat();
            [head, vec![0; usize::from(*len)]].concat()
        });
        written.collect::<Vec<_>>().concat()
    };
    let (before, behind) = records.neutral.split_at(records.before_fee);
    [data, written(before), fee, written(behind)].concat()
}

#[test]
fn the_swap_alone_stays_within_what_three_hundred_taught() {
    assert_random_swaps_fit(RandomSwaps::from_seed(5), EXACT_IN_SWAPS);
}

#[test]
fn the_exact_output_alone_stays_within_what_three_hundred_taught() {
    assert_random_swaps_fit(RandomExactOutSwaps::from_seed(5), EXACT_OUT_SWAPS);
}

fn assert_random_swaps_fit(swaps: impl Iterator<Item = Swap>, count: usize) {
    let mut svm = Svm::new();
    let mut units = Units::default();
    let mut paid = 0;
    for (number, swap) in swaps.take(count).enumerate() {
        // Numbers that no wallet can have are no matter of units.
        let (Some(ran), direction) = (run(&mut svm, &swap, number), swap.direction) else {
            continue;
        };
        let Some(operands) = operands(&ran.snapshot, direction, &swap.terms, &swap.clock) else {
            continue;
        };
        paid += 1;
        let allowed = units.of(&ran.pool, &ran.snapshot, direction, &operands, &swap.clock);
        let limit = ran.route.units(ran.terms, allowed);
        let sample = units.observe(&ran.executed.logs, &ran.snapshot, swap.clock);
        assert_eq!(sample.modelled, allowed.modelled, "by the event: {swap:?}");
        if paid > TAUGHT {
            assert_fits(limit, ran.executed.compute_units, MOST_OVER, &swap);
        }
    }
    assert!(paid > count / 4, "only {paid} were paid");
}

/// Units that random swaps of both instructions have taught.
fn taught(svm: &mut Svm) -> Units {
    let mut units = Units::default();
    let swaps = RandomSwaps::from_seed(7).zip(RandomExactOutSwaps::from_seed(7));
    let swaps = swaps.flat_map(|(exact_in, exact_out)| [exact_in, exact_out]);
    let mut taught = 0;
    for (number, swap) in swaps.enumerate() {
        if let Some(ran) = run(svm, &swap, number) {
            units.observe(&ran.executed.logs, &ran.snapshot, swap.clock);
            taught += 1;
        }
        if taught == TAUGHT {
            break;
        }
    }
    svm.set_time(EPOCH, UNIX_TIMESTAMP);
    units
}

/// A swap that was executed.
struct Ran {
    snapshot: Arc<PoolSnapshot>,
    pool: Pubkey,
    route: Route,
    terms: SwapTerms,
    executed: Executed,
}

/// Executes a swap through the guard; `None` where the chain refuses it, which is no matter of units.
fn run(svm: &mut Svm, swap: &Swap, number: usize) -> Option<Ran> {
    svm.set_time(swap.clock.epoch, swap.clock.unix_timestamp);
    let name = format!("random {}", number % RANDOM_POOLS);
    let pool = svm.open(&name, &PoolSpec::like(swap.snapshot.clone()));
    let snapshot = Arc::new(snapshot(svm, pool.address));
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
    let (route, amount_in, minimum_out) = match swap.terms {
        Terms::ExactIn { amount_in, .. } => (Route::ExactIn(accounts), amount_in, 1),
        Terms::ExactOut { amount_out, .. } => (Route::ExactOut(accounts), u64::MAX, amount_out),
    };
    let terms = SwapTerms {
        amount_in,
        minimum_out,
        expiry_slot: None,
    };
    let instruction = route.guarded_swap(terms, None);
    let executed = svm.send(&[instruction], &[&user.keypair]).ok()?;
    Some(Ran {
        snapshot,
        pool: pool.address,
        route,
        terms,
        executed,
    })
}

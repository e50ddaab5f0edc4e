//! Calibration by swaps made up from the formula: executed numbers, times a factor that the test sets.

use cpmm::fixtures::{executed_compute_units, executed_swaps};

use super::*;
use crate::{
    compute_table::TokenShape,
    compute_units::{
        Profile,
        profile::tests::{divisions, shape},
    },
};

/// Swaps of the whole chain, each second.
const PER_SECOND: u64 = 5;

/// From the building of a transaction to its landing.
const LANDS_AFTER: u64 = 10;

/// When a change is noticed at the latest: enough swaps for three pools have landed.
const NOTICED_AFTER: u64 = 15;

const POOLS: u64 = 200;

/// A swap with the shape and the divisions of an executed one.
#[derive(Clone, Copy)]
struct Trade {
    shape: SwapShape,
    modelled: u32,
}

fn trades() -> Vec<Trade> {
    let executed = executed_swaps().into_iter().zip(executed_compute_units());
    executed
        .filter(|(_, used)| used.is_some())
        .map(|(swap, _)| {
            let shape = shape(&swap);
            let modelled = Profile::MAINNET.swap(shape, divisions(&swap));
            Trade { shape, modelled }
        })
        .collect()
}

fn pool(number: u64) -> Pubkey {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Pubkey::new_from_array(bytes)
}

struct Built {
    at: u64,
    pool: u64,
    trade: Trade,
    limit: Limit,
}

/// One transaction that has landed.
#[derive(Clone, Copy)]
struct Landed {
    built_at: u64,
    pool: u64,
    /// Limit over used, thousandths; below 1,000 it ran out.
    over: i64,
}

/// The chain, and Sluice that builds every transaction of it.
struct Chain {
    trades: Vec<Trade>,
    calibration: Calibration,
    seed: u64,
    waiting: std::collections::VecDeque<Built>,
    landed: Vec<Landed>,
}

impl Chain {
    fn new() -> Self {
        Self {
            trades: trades(),
            calibration: known(Duration::ZERO),
            seed: 1,
            waiting: std::collections::VecDeque::new(),
            landed: Vec::new(),
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        // xorshift64*
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
    }

    /// Lets time pass; `factor` says what a swap of this pool uses over the model, thousandths.
    fn run(&mut self, seconds: std::ops::Range<u64>, factor: impl Fn(u64) -> u64) {
        for second in seconds {
            let now = Duration::from_secs(second);
            while self
                .waiting
                .front()
                .is_some_and(|built| built.at + LANDS_AFTER <= second)
            {
                let built = self.waiting.pop_front().expect("there is one");
                let noise = 985 + self.random(16);
                let used = u64::from(built.trade.modelled) * factor(built.pool) * noise / 1_000_000;
                let sample = Sample {
                    pool: pool(built.pool),
                    shape: built.trade.shape,
                    modelled: built.trade.modelled,
                    used: u32::try_from(used).expect("small"),
                };
                self.landed.push(Landed {
                    built_at: built.at,
                    pool: built.pool,
                    over: i64::from(built.limit.units) * 1_000 / i64::from(sample.used),
                });
                // One that ran out is in the logs as failed, and teaches nothing; another program's would not have.
                self.calibration.observe(&sample, now);
            }
            for _ in 0..PER_SECOND {
                let number = self.random(POOLS);
                // A pool has one pair of tokens, and so one of few trades.
                let of_pool = number.wrapping_mul(31) + POOLS * self.random(5);
                let len = u64::try_from(self.trades.len()).expect("few");
                let trade = self.trades[usize::try_from(of_pool % len).expect("few")];
                let limit = self
                    .calibration
                    .limit(&pool(number), trade.shape, trade.modelled, now);
                self.waiting.push_back(Built {
                    at: second,
                    pool: number,
                    trade,
                    limit,
                });
            }
        }
    }

    fn built(&self, seconds: std::ops::Range<u64>) -> impl Iterator<Item = &Landed> {
        self.landed
            .iter()
            .filter(move |landed| seconds.contains(&landed.built_at))
    }

    fn shorts(&self, seconds: std::ops::Range<u64>) -> usize {
        self.built(seconds)
            .filter(|landed| landed.over < 1_000)
            .count()
    }

    /// Of limit over used, thousandths.
    fn median(&self, seconds: std::ops::Range<u64>) -> i64 {
        let mut over: Vec<i64> = self.built(seconds).map(|landed| landed.over).collect();
        over.sort_unstable();
        over[over.len() / 2] - 1_000
    }
}

const HOUR: u64 = 3_600;

/// Nothing learned yet of a build that was deployed in slot 1.
fn known(now: Duration) -> Calibration {
    let mut calibration = Calibration::new(now);
    assert_eq!(calibration.deployed(1, now), None, "it is no upgrade");
    calibration
}

/// A swap of two tokens of the same kind.
fn alike(kind: TokenKind, neutral_extensions: u8) -> SwapShape {
    let token = TokenShape {
        kind,
        neutral_extensions,
        has_hook: false,
    };
    SwapShape {
        fixed: FixedAmount::In,
        input: token,
        output: token,
    }
}

#[test]
fn where_the_prior_is_right_no_limit_is_short_and_the_excess_is_small() {
    let mut chain = Chain::new();
    chain.run(0..2 * HOUR, |_| 1_000);
    assert_eq!(chain.shorts(0..2 * HOUR), 0);
    let median = chain.median(HOUR..2 * HOUR);
    assert!(median <= 25, "{median}");
}

#[test]
fn a_prior_that_is_low_is_short_only_until_the_first_swaps_land() {
    let mut chain = Chain::new();
    chain.run(0..HOUR, |_| 1_124);
    assert!(chain.shorts(0..LANDS_AFTER + 1) > 0, "the prior was low");
    assert_eq!(chain.shorts(NOTICED_AFTER..HOUR), 0);
}

#[test]
fn a_dearer_build_is_short_only_for_what_was_built_before_it_was_seen() {
    for factor in [1_200, 1_600] {
        for announced in [true, false] {
            let mut chain = Chain::new();
            chain.run(0..HOUR, |_| 1_000);
            if announced {
                chain.calibration.deployed(2, Duration::from_secs(HOUR));
            }
            // Transactions on their way meet the new build.
            chain.run(HOUR..2 * HOUR, |_| factor);
            assert_eq!(chain.shorts(0..HOUR - LANDS_AFTER), 0);
            // An announcement covers a rise by the room that it adds, and only that.
            let covered = announced && factor <= 1_200;
            let noticed = if covered { HOUR } else { HOUR + NOTICED_AFTER };
            assert_eq!(chain.shorts(noticed..2 * HOUR), 0, "{factor} {announced}");
        }
    }
}

#[test]
fn a_cheaper_build_is_never_short_and_its_excess_goes() {
    let mut chain = Chain::new();
    chain.run(0..HOUR, |_| 1_000);
    chain.run(HOUR..4 * HOUR, |_| 800);
    assert_eq!(chain.shorts(0..4 * HOUR), 0);
    let (first, last) = (
        chain.median(HOUR..2 * HOUR),
        chain.median(3 * HOUR..4 * HOUR),
    );
    assert!(last <= 30, "{first}, then {last}");
}

#[test]
fn one_pool_at_three_times_the_price_raises_itself_alone() {
    const DEAR: u64 = 17;
    let mut chain = Chain::new();
    chain.run(0..2 * HOUR, |pool| if pool == DEAR { 3_000 } else { 1_000 });
    let others = chain
        .built(600..2 * HOUR)
        .filter(|landed| landed.pool != DEAR);
    let most = others.map(|landed| landed.over).max().expect("there are");
    assert!(most <= 1_090, "{most}");
    let dear = chain
        .built(2 * HOUR - 600..2 * HOUR)
        .filter(|landed| landed.pool == DEAR);
    assert!(dear.map(|landed| landed.over).min().expect("it trades") >= 1_000);
}

#[test]
fn what_was_learned_outlives_the_process_and_not_the_build() {
    let mut chain = Chain::new();
    chain.run(0..HOUR, |_| 1_080);
    let learned = chain.calibration.learned();
    let now = Duration::from_secs(HOUR);
    let shape = chain.trades[0].shape;
    let limit = |calibration: &Calibration| calibration.limit(&pool(9_999), shape, 10_000, now);
    let mut same = Calibration::restore(&learned, now);
    assert_eq!(same.deployed(1, now), None);
    assert_eq!(limit(&same), limit(&chain.calibration));
    let mut other = Calibration::restore(&learned, now);
    assert_eq!(other.deployed(2, now), Some(Trigger::Deployed));
    assert!(limit(&other).units > limit(&same).units);
    assert_eq!(limit(&other).samples, 0);
    assert_eq!(other.learned().deployment_slot, Some(2));
}

#[test]
fn a_transaction_that_ran_out_raises_the_limit_of_its_pool() {
    let shape = alike(TokenKind::Spl, 0);
    let now = Duration::ZERO;
    let mut calibration = known(now);
    let sample = Sample {
        pool: pool(1),
        shape,
        modelled: 10_000,
        used: 0,
    };
    let limit = |calibration: &Calibration, number| {
        calibration.limit(&pool(number), shape, 10_000, now).units
    };
    let before = limit(&calibration, 1);
    assert_eq!(calibration.ran_short(&sample, before, now), None);
    assert!(limit(&calibration, 1) >= before * 110 / 100);
    assert_eq!(limit(&calibration, 2), before);
}

#[test]
fn three_pools_that_run_high_within_a_minute_are_a_new_build_and_two_are_not() {
    let shape = alike(TokenKind::Token2022, 1);
    let mut calibration = known(Duration::ZERO);
    let mut observe = |number, second| {
        let sample = Sample {
            pool: pool(number),
            shape,
            modelled: 10_000,
            used: 13_000,
        };
        calibration.observe(&sample, Duration::from_secs(second))
    };
    assert_eq!(observe(1, 0), None);
    assert_eq!(observe(1, 1), None);
    assert_eq!(observe(2, 2), None);
    assert_eq!(observe(3, 30), Some(Trigger::Outliers));
    assert_eq!(calibration.learned().start, Ratio(1_500));
}

#[test]
fn a_second_pool_raises_the_ratio_at_once_and_the_limit_has_a_margin_over_it() {
    let shape = alike(TokenKind::Spl, 0);
    let now = Duration::ZERO;
    let mut calibration = known(now);
    let mut after = |number| {
        let sample = Sample {
            pool: pool(number),
            shape,
            modelled: 10_000,
            used: 10_800,
        };
        calibration.observe(&sample, now);
        calibration.limit(&pool(9), shape, 10_000, now).units
    };
    assert_eq!(after(1), 10_600, "one pool raises itself alone");
    assert_eq!(after(1), 10_600);
    assert_eq!(after(2), 10_900);
}

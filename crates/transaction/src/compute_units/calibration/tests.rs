//! Calibration by swaps made up from the formula: executed numbers, times a factor that the test sets.

use self::chain::{Chain, LANDS_AFTER, pool};
use super::*;
use crate::compute_table::TokenShape;

mod chain;

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
        neutral_extensions,
        ..TokenShape::plain(kind)
    };
    SwapShape {
        fixed: FixedAmount::In,
        input: token,
        output: token,
    }
}

#[test]
fn where_the_prior_is_right_no_limit_is_short_and_the_excess_is_the_margin() {
    let mut chain = Chain::new();
    chain.run(0..2 * HOUR, |_| 1_000);
    assert_eq!(chain.shorts(0..2 * HOUR), 0);
    assert!(chain.median(0..2 * HOUR) <= 10);
}

/// What swaps of one shape vary by is excess: some use as much as the dearest.
#[test]
fn where_swaps_of_one_shape_vary_none_is_short() {
    let mut chain = Chain::varying_by(30);
    chain.run(0..HOUR, |_| 1_000);
    assert_eq!(chain.shorts(0..HOUR), 0);
    let median = chain.median(0..HOUR);
    assert!(median <= 30, "{median}");
}

#[test]
fn a_prior_that_is_low_is_short_only_until_the_first_swaps_land() {
    let mut chain = Chain::new();
    chain.run(0..HOUR, |_| 1_124);
    assert_eq!(chain.shorts(0..1), 1, "the prior was low");
    assert_eq!(chain.shorts(1..HOUR), 0);
    let median = chain.median(0..HOUR);
    assert!(median <= 10, "{median}");
}

#[test]
fn a_dearer_build_is_short_only_for_what_was_built_before_it_was_seen() {
    const CHANGE: u64 = HOUR / 2;
    const END: u64 = 3 * HOUR / 2;
    for factor in [1_200, 1_600] {
        for announced in [true, false] {
            let mut chain = Chain::new();
            chain.run(0..CHANGE, |_| 1_000);
            if announced {
                chain.calibration.deployed(2, Duration::from_secs(CHANGE));
            }
            // Transactions on their way meet the new build.
            chain.run(CHANGE..END, |_| factor);
            assert_eq!(chain.shorts(0..CHANGE - LANDS_AFTER), 0);
            // An announcement covers a rise by the room that it adds, and only that.
            let covered = announced && factor <= 1_200;
            let unseen = if covered { CHANGE } else { CHANGE + 1 };
            let shorts = chain.shorts(CHANGE - LANDS_AFTER..unseen);
            assert!((10..=11).contains(&shorts), "{factor} {announced} {shorts}");
            assert_eq!(chain.shorts(unseen..END), 0, "{factor} {announced}");
            let median = chain.median(CHANGE..END);
            assert!(median <= 12, "{factor} {announced} {median}");
        }
    }
}

#[test]
fn a_cheaper_build_is_never_short_and_its_excess_goes() {
    const CHANGE: u64 = HOUR / 2;
    const END: u64 = CHANGE + 3 * HOUR / 2;
    for announced in [true, false] {
        let mut chain = Chain::new();
        chain.run(0..CHANGE, |_| 1_000);
        if announced {
            chain.calibration.deployed(2, Duration::from_secs(CHANGE));
        }
        chain.run(CHANGE..END, |_| 800);
        assert_eq!(chain.shorts(0..END), 0, "{announced}");
        // What is not announced comes down by a step in each half window, and is at most half way after half an hour.
        let (hour, later) = (
            chain.median(CHANGE..CHANGE + HOUR),
            chain.median(CHANGE + HOUR..END),
        );
        let most = if announced { 12 } else { 138 };
        assert!(hour <= most, "{announced}: {hour}, then {later}");
        assert!(later <= 12, "{announced}: {hour}, then {later}");
    }
}

#[test]
fn one_pool_at_three_times_the_price_raises_itself_alone() {
    const DEAR: u64 = 17;
    let mut chain = Chain::new();
    chain.run(0..HOUR, |pool| if pool == DEAR { 3_000 } else { 1_000 });
    let others = chain.built(0..HOUR).filter(|landed| landed.pool != DEAR);
    let most = others.map(|landed| landed.over).max().expect("there are");
    assert!(most <= 1_060, "{most}");
    let dear = chain.built(600..HOUR).filter(|landed| landed.pool == DEAR);
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

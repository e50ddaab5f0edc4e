//! Properties of every swap, tried on thousands of random ones of a fixed seed.

use cpmm::{
    AmmConfig, Amount, Clock, Direction, FeeRate, PerToken, PoolSnapshot, PoolState, TransferFee,
    TransferFeeConfig,
    fixtures::{blank_pool, published_config},
    ids,
};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner},
};
use sluice_testkit::{
    names::keypair,
    pool::{PoolSpec, TokenSpec, constant_fee, guarded_swap},
    svm::{EPOCH, Svm, UNIX_TIMESTAMP, program},
};
use std::{cell::RefCell, sync::Arc};
use swap_guard_interface::{GuardError, PROGRAM_ID};

/// Enough that every branch of the fee arithmetic is taken many times.
pub const CASES: u32 = 2_000;

pub fn check<S: Strategy>(strategy: &S, test: impl Fn(S::Value) -> TestCaseResult) {
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, b"thirty-two bytes of a fixed seed");
    TestRunner::new_with_rng(config, rng)
        .run(strategy, test)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Amounts of every magnitude, up to this many bits.
pub fn magnitude(bits: u32) -> impl Strategy<Value = u64> {
    (1..=bits).prop_flat_map(|bits| 1..=(u64::MAX >> (u64::BITS - bits)))
}

fn token() -> impl Strategy<Value = TokenSpec> {
    let fee = (0..=10_000_u16, magnitude(50)).prop_map(|(basis_points, cap)| {
        let uncapped = constant_fee(basis_points);
        // Every second fee is capped.
        let maximum_fee = if cap % 2 == 0 { cap } else { u64::MAX };
        let fee = TransferFee {
            maximum_fee,
            ..uncapped.newer
        };
        TransferFeeConfig {
            older: fee,
            newer: fee,
        }
    });
    (magnitude(56), 0..3_u8, fee).prop_map(|(vault, kind, fee)| match kind {
        0 => TokenSpec::spl(vault),
        1 => TokenSpec::token_2022(vault),
        _ => TokenSpec::with_fee(vault, fee),
    })
}

/// A pool with any rates, creator fee modes and tokens.
pub fn setup() -> impl Strategy<Value = PoolSpec> {
    (
        token(),
        token(),
        0..100_000_u64,
        0..100_000_u64,
        0..3_u8,
        any::<bool>(),
    )
        .prop_map(
            |(token_0, token_1, trade, creator, creator_fee_on, enable_creator_fee)| PoolSpec {
                config: AmmConfig {
                    trade_fee_rate: FeeRate(trade),
                    creator_fee_rate: FeeRate(creator),
                    ..published_config()
                },
                state: PoolState {
                    creator_fee_on,
                    enable_creator_fee,
                    ..blank_pool()
                },
                ..PoolSpec::of(token_0, token_1)
            },
        )
}

/// How far the minimum is from what the quote promises.
fn distance() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), Just(1), Just(-1), any::<i32>().prop_map(i64::from)]
}

pub fn snapshot(svm: &Svm, pool: &sluice_testkit::pool::Pool, setup: &PoolSpec) -> PoolSnapshot {
    let mint =
        |address| cpmm::Mint::decode(&svm.account(address).data).expect("the mint was placed");
    let state = svm.pool_state(pool.address);
    let (vaults, mints) = (state.vaults, state.mints);
    PoolSnapshot {
        config: Arc::new(setup.config.clone()),
        vault_amounts: PerToken::new(
            Amount::new(svm.balance(vaults.token_0)),
            Amount::new(svm.balance(vaults.token_1)),
        ),
        vaults_frozen: false,
        mints: PerToken::new(Arc::new(mint(mints.token_0)), Arc::new(mint(mints.token_1))),
        pool: Arc::new(state),
    }
}

#[test]
fn a_swap_receives_its_quote_to_the_unit_or_moves_nothing() {
    let svm = RefCell::new(Svm::new());
    let accepted = std::cell::Cell::new(0);
    let strategy = (setup(), magnitude(50), distance(), any::<bool>());
    check(&strategy, |(setup, amount_in, distance, zero_for_one)| {
        let svm = &mut *svm.borrow_mut();
        let pool = svm.open("pool", &setup);
        let user = svm.fund("user", &pool, PerToken::new(amount_in, amount_in));
        let direction = if zero_for_one {
            Direction::ZeroForOne
        } else {
            Direction::OneForZero
        };
        let clock = Clock {
            epoch: EPOCH,
            unix_timestamp: UNIX_TIMESTAMP,
        };
        let quote =
            snapshot(svm, &pool, &setup).quote_exact_in(direction, Amount::new(amount_in), &clock);
        let promised = quote.as_ref().map_or(1, |quote| quote.received.get());
        let minimum_out = promised.saturating_add_signed(distance).max(1);

        let accounts = pool.swap_accounts(&user, direction);
        let swap = guarded_swap(&accounts, amount_in, minimum_out);
        let sent = svm.send(&[swap], &[&user.keypair]);
        let spent = amount_in - svm.balance(accounts.input_token_account);
        let received = svm.balance(accounts.output_token_account) - amount_in;
        match (sent, quote) {
            (Ok(_), quote) => {
                let quote = quote.expect("what cannot be quoted cannot be swapped");
                accepted.set(accepted.get() + 1);
                prop_assert_eq!(received, quote.received.get());
                prop_assert!(received >= minimum_out);
                prop_assert_eq!(spent, amount_in);
            }
            (Err(refused), quote) => {
                prop_assert_eq!([spent, received], [0, 0]);
                if let Ok(quote) = quote {
                    prop_assert!(quote.received.get() < minimum_out, "{:?}", refused);
                    prop_assert_eq!(refused.raised_by(), PROGRAM_ID);
                    prop_assert_eq!(refused.code(), GuardError::SlippageExceeded.code());
                }
            }
        }
        Ok(())
    });
    assert!(accepted.get() > CASES / 4, "{accepted:?} were accepted");
}

#[test]
fn whatever_the_exchange_does_the_user_gets_the_minimum_and_spends_no_more() {
    let svm = RefCell::new(Svm::with_exchange(&program("hostile_exchange")));
    // Small numbers, so that orders and wishes meet and miss each other by a unit.
    let amounts = [1..8_u64, 1..8, 0..8, 0..8];
    check(&amounts, |[amount_in, minimum_out, take, pay]| {
        let svm = &mut *svm.borrow_mut();
        let pool = svm.open("pool", &PoolSpec::plain());
        let orders = [
            &take.to_le_bytes()[..],
            &pay.to_le_bytes(),
            &[5, 0],
            &[0; 32],
            &[5],
            &[0; 8],
            &[0],
        ]
        .concat();
        svm.place(pool.address, ids::PROGRAM_ID, orders);
        let user = svm.fund("user", &pool, PerToken::new(100, 100));
        let accounts = pool.swap_accounts(&user, Direction::ZeroForOne);
        let swap = guarded_swap(&accounts, amount_in, minimum_out);
        let sent = svm.send(&[swap], &[&keypair("user")]);

        let spent = 100 - svm.balance(accounts.input_token_account);
        let received = svm.balance(accounts.output_token_account) - 100;
        prop_assert_eq!(sent.is_ok(), pay >= minimum_out && take <= amount_in);
        let expected = if sent.is_ok() { [take, pay] } else { [0, 0] };
        prop_assert_eq!([spent, received], expected);
        Ok(())
    });
}

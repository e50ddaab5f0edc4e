//! Profiles of swaps and the formula: enough units for every executed swap, and not much more.

use cpmm::{
    Amount, PassedRecords,
    fixtures::{ExecutedSwap, executed_compute_units, executed_swaps},
};

use super::*;

/// On top of the constants, which are envelopes of what was seen: not every swap was.
const VECTORS_MARGIN: u32 = 250;

/// The most that the formula may be over, percent.
const MOST_OVER: u32 = 15;

fn shape(swap: &ExecutedSwap) -> SwapShape {
    SwapShape::of(&swap.snapshot(), swap.direction(), FixedAmount::In)
}

fn divisions(swap: &ExecutedSwap) -> DivisionCount {
    let (state, direction, clock) = (swap.snapshot(), swap.direction(), swap.clock());
    let quote = state
        .quote_exact_in(direction, Amount::new(swap.amount_in), &clock)
        .expect("it paid");
    state
        .divisions(direction, &SwapOperands::from(&quote), &clock)
        .collect()
}

#[test]
fn the_formula_is_enough_for_every_executed_swap_and_not_much_more() {
    let executed = executed_swaps().into_iter().zip(executed_compute_units());
    let mut seen = 0;
    for (swap, used) in executed {
        let Some(used) = used else { continue };
        seen += 1;
        let limit = Profile::VECTORS.swap(shape(&swap), divisions(&swap)) + VECTORS_MARGIN;
        assert!(limit >= used, "{limit} is short of {used}: {swap:?}");
        assert!(
            limit * 100 <= used * (100 + MOST_OVER),
            "{limit} is more than {MOST_OVER} % over {used}: {swap:?}"
        );
    }
    assert_eq!(seen, 2_044);
}

const fn exact_in(input: TokenShape, output: TokenShape) -> SwapShape {
    SwapShape {
        fixed: FixedAmount::In,
        input,
        output,
    }
}

#[test]
fn the_prior_covers_both_swaps_that_mainnets_logs_show() {
    let spl = TokenShape::plain(TokenKind::Spl);
    let fee = TokenShape::plain(TokenKind::Token2022WithFee);
    // What they used, restated for the optimised token program, and how many divisions were wide.
    for (input, output, large, used) in [(spl, fee, 3, 33_255), (fee, spl, 1, 32_700)] {
        let shape = exact_in(input, output);
        let units = Profile::MAINNET.swap(shape, DivisionCount { small: 0, large });
        assert!(units >= used && units - used < 100, "{units} for {used}");
    }
}

#[test]
fn extensions_count_by_what_searches_pass_by() {
    // The fee's record is before the extensions, or there is none: then its search passes by all.
    let token = |kind, neutral_extensions: u8| TokenShape {
        neutral_extensions,
        passed_records: PassedRecords {
            for_fee: match kind {
                TokenKind::Token2022 => neutral_extensions,
                _ => 0,
            },
            for_others: 3 * neutral_extensions,
        },
        ..TokenShape::plain(kind)
    };
    let units =
        |input, output| Profile::MAINNET.swap(exact_in(input, output), DivisionCount::default());
    let spl = token(TokenKind::Spl, 9);
    assert_eq!(units(spl, spl), 28_300);
    let plain = token(TokenKind::Token2022, 2);
    assert_eq!(units(spl, plain), 28_300 + 3_200 + 2 * 641);
    let fee = token(TokenKind::Token2022WithFee, 2);
    assert_eq!(
        units(fee, plain),
        28_300 + 4_200 + 2 * 315 + 3_200 + 2 * 641
    );
}

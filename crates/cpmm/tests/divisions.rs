//! Division counts against the compute units of swaps that the real program executed.
//!
//! In that build a wide division costs some 3,335 units and 14 for each set bit of its quotient, so a count that is off by
//! one shows as thousands of units, and an operand that is off shows as tens.

use cpmm::{
    Amount, Direction, Division, DivisionCount, SwapOperands, TokenProgram,
    fixtures::{ExecutedSwap, executed_compute_units, executed_swaps},
};

/// A wide division in that build, without the set bits of its quotient.
const EACH: i64 = 3_335;

/// Each set bit of the quotient.
const EACH_BIT: i64 = 14;

/// A side of the swap, as far as the token programs' cost depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Spl,
    Token2022,
    WithFee,
}

struct Paid {
    sides: [Side; 2],
    zero_for_one: bool,
    creator_on_input: bool,
    units: i64,
    divisions: Vec<Division>,
}

fn side(swap: &ExecutedSwap, input: bool) -> Side {
    let state = swap.snapshot();
    let zero = (swap.direction() == Direction::ZeroForOne) == input;
    let (program, mint) = if zero {
        (state.pool.token_programs.token_0, &state.mints.token_0)
    } else {
        (state.pool.token_programs.token_1, &state.mints.token_1)
    };
    match TokenProgram::from_id(&program) {
        Some(TokenProgram::Token2022) if mint.transfer_fee.is_some() => Side::WithFee,
        Some(TokenProgram::Token2022) => Side::Token2022,
        _ => Side::Spl,
    }
}

fn paid_swaps() -> Vec<Paid> {
    let units = executed_compute_units();
    let swaps = executed_swaps();
    assert_eq!(units.len(), swaps.len());
    swaps
        .iter()
        .zip(units)
        .filter_map(|(swap, units)| {
            let (state, direction, clock) = (swap.snapshot(), swap.direction(), swap.clock());
            let units = i64::from(units?);
            let quote = state
                .quote_exact_in(direction, Amount::new(swap.amount_in), &clock)
                .expect("it paid");
            Some(Paid {
                sides: [side(swap, true), side(swap, false)],
                zero_for_one: direction == Direction::ZeroForOne,
                creator_on_input: quote.creator_fee_on_input,
                units,
                divisions: state
                    .divisions(direction, &SwapOperands::from(&quote), &clock)
                    .collect(),
            })
        })
        .collect()
}

/// What is left of the units when the wide divisions are taken off.
fn without_divisions(paid: &Paid) -> i64 {
    let wide: Vec<_> = paid.divisions.iter().filter(|d| d.is_wide()).collect();
    let bits: u32 = wide
        .iter()
        .map(|division| (division.numerator / division.divisor).count_ones())
        .sum();
    let count = i64::try_from(wide.len()).expect("at most nine");
    paid.units - EACH * count - EACH_BIT * i64::from(bits)
}

#[test]
fn between_spl_tokens_the_divisions_explain_the_units_to_eight() {
    let paid = paid_swaps();
    assert_eq!(paid.len(), 2_044);
    let spl: Vec<_> = paid
        .iter()
        .filter(|paid| paid.sides == [Side::Spl, Side::Spl])
        .collect();
    assert_eq!(spl.len(), 604);
    for paid in spl {
        let model =
            17_784 - 20 * i64::from(paid.zero_for_one) - 9 * i64::from(paid.creator_on_input);
        let residue = without_divisions(paid) - model;
        assert!(
            (-4..=8).contains(&residue),
            "{residue}: {:?}",
            paid.divisions
        );
    }
}

#[test]
fn other_kinds_of_tokens_leave_what_their_programs_cost() {
    let bounds = |sides: [Side; 2]| match sides {
        [Side::Spl, Side::Spl] => (17_700, 17_800),
        [Side::Spl, Side::Token2022] | [Side::Token2022, Side::Spl] => (19_944, 19_980),
        [Side::Token2022, Side::Token2022] => (21_896, 21_928),
        [Side::Spl, Side::WithFee] | [Side::WithFee, Side::Spl] => (21_058, 21_494),
        [Side::WithFee, Side::Token2022] | [Side::Token2022, Side::WithFee] => (23_008, 23_416),
        [Side::WithFee, Side::WithFee] => (24_120, 24_913),
    };
    for paid in paid_swaps() {
        let (least, most) = bounds(paid.sides);
        let rest = without_divisions(&paid);
        assert!(
            (least..=most).contains(&rest),
            "{rest} of {:?}: {:?}",
            paid.sides,
            paid.divisions
        );
    }
}

#[test]
fn the_width_of_numerator_and_divisor_decides_the_kind() {
    let count = |numerator: u128, divisor: u128| {
        DivisionCount::from_iter([Division { numerator, divisor }])
    };
    let none = DivisionCount::default();
    assert_eq!(count(u128::from(u64::MAX), 1), none);
    assert_eq!(
        count(1 << 64, (1 << 32) - 1),
        DivisionCount { small: 1, ..none }
    );
    assert_eq!(count(1 << 64, 1 << 32), DivisionCount { large: 1, ..none });
}

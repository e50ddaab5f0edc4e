//! 128-bit multiplication and division out of 64-bit operations.
//!
//! Nothing in this file may multiply or divide a `u128`: that would call the very routines it implements. Shifts,
//! additions and comparisons of `u128` compile to plain instructions.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "every division here follows Rust's own check for a zero divisor, and whatever may wrap says so"
)]

/// Quotient and remainder of one division.
pub struct Division {
    pub quotient: u128,
    pub remainder: u128,
}

/// Mask of the low half of a 64-bit word.
const LOW_HALF: u64 = 0xffff_ffff;

const fn high(x: u128) -> u64 {
    (x >> 64) as u64
}

const fn low(x: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the low word is asked for")]
    let word = x as u64;
    word
}

const fn join(high: u64, low: u64) -> u128 {
    ((high as u128) << 64) | low as u128
}

/// The full 128-bit product of two words: schoolbook multiplication in base 2^32, in which no partial sum overflows.
const fn multiply_words(a: u64, b: u64) -> u128 {
    let (a1, a0) = (a >> 32, a & LOW_HALF);
    let (b1, b0) = (b >> 32, b & LOW_HALF);
    let low_product = a0.wrapping_mul(b0);
    let cross = a1.wrapping_mul(b0).wrapping_add(low_product >> 32);
    let middle = a0.wrapping_mul(b1).wrapping_add(cross & LOW_HALF);
    let upper = a1
        .wrapping_mul(b1)
        .wrapping_add(cross >> 32)
        .wrapping_add(middle >> 32);
    join(upper, (middle << 32) | (low_product & LOW_HALF))
}

/// `a * b`, modulo 2^128.
pub const fn multiply(a: u128, b: u128) -> u128 {
    let cross = high(a)
        .wrapping_mul(low(b))
        .wrapping_add(low(a).wrapping_mul(high(b)));
    multiply_words(low(a), low(b)).wrapping_add(join(cross, 0))
}

/// One base-2^32 digit of a long division: the quotient of `(rest, digit)` by `divisor`, whose top bit is set, and
/// the new rest. `rest < divisor` holds on entry and again for the rest returned.
///
/// The first estimate divides by the divisor's upper half alone. With a normalised divisor it is at most two too
/// large (Knuth, TAOCP volume 2, 4.3.1, theorem B), so the correction runs at most twice.
const fn divide_digit(rest: u64, digit: u64, divisor: u64) -> (u64, u64) {
    let (upper, lower) = (divisor >> 32, divisor & LOW_HALF);
    let mut quotient = rest / upper;
    let mut left = rest % upper;
    while quotient > LOW_HALF || quotient.wrapping_mul(lower) > (left << 32) | digit {
        quotient = quotient.wrapping_sub(1);
        left = left.wrapping_add(upper);
        if left > LOW_HALF {
            break;
        }
    }
    let rest = (rest << 32)
        .wrapping_add(digit)
        .wrapping_sub(quotient.wrapping_mul(divisor));
    (quotient, rest)
}

/// Quotient and remainder of `(upper, lower)` by one word. The quotient must fit a word: `upper < divisor`.
const fn divide_two_words(upper: u64, lower: u64, divisor: u64) -> (u64, u64) {
    if upper == 0 {
        return (lower / divisor, lower % divisor);
    }
    let shift = divisor.leading_zeros();
    let divisor = divisor << shift;
    let dividend = join(upper, lower) << shift;
    let (q1, rest) = divide_digit(high(dividend), low(dividend) >> 32, divisor);
    let (q0, rest) = divide_digit(rest, low(dividend) & LOW_HALF, divisor);
    ((q1 << 32) | q0, rest >> shift)
}

/// Unsigned division. A zero divisor is excluded by the check that Rust makes before every division.
pub const fn divide(dividend: u128, divisor: u128) -> Division {
    if high(divisor) == 0 {
        let divisor = low(divisor);
        let upper = high(dividend);
        let (q1, rest) = (upper / divisor, upper % divisor);
        let (q0, rest) = divide_two_words(rest, low(dividend), divisor);
        return Division {
            quotient: join(q1, q0),
            remainder: rest as u128,
        };
    }
    // The quotient fits a word. Dividing half the dividend by the divisor's 64 leading bits gives it, or one more,
    // once the shift is undone; taking one off makes it never too large, and one correction makes it exact.
    let shift = high(divisor).leading_zeros();
    let half = dividend >> 1;
    let (estimate, _) = divide_two_words(high(half), low(half), high(divisor << shift));
    let estimate = ((estimate as u128) << shift) >> 63;
    let mut quotient = estimate.saturating_sub(1);
    let mut remainder = dividend.wrapping_sub(multiply(quotient, divisor));
    if remainder >= divisor {
        quotient = quotient.wrapping_add(1);
        remainder = remainder.wrapping_sub(divisor);
    }
    Division {
        quotient,
        remainder,
    }
}

const fn is_negative(x: u128) -> bool {
    x >> 127 != 0
}

const fn magnitude(x: u128) -> u128 {
    if is_negative(x) { x.wrapping_neg() } else { x }
}

/// Division of two's-complement operands, rounded toward zero; the remainder has the sign of the dividend.
pub const fn divide_signed(dividend: u128, divisor: u128) -> Division {
    let Division {
        quotient,
        remainder,
    } = divide(magnitude(dividend), magnitude(divisor));
    Division {
        quotient: if is_negative(dividend) == is_negative(divisor) {
            quotient
        } else {
            quotient.wrapping_neg()
        },
        remainder: if is_negative(dividend) {
            remainder.wrapping_neg()
        } else {
            remainder
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{divide, divide_signed, multiply};

    /// Words that sit on the edges of the algorithm: powers of two, their neighbours, and full words.
    const EDGES: [u64; 12] = [
        0,
        1,
        2,
        3,
        0x7fff_ffff,
        0xffff_ffff,
        0x1_0000_0000,
        0x1_0000_0001,
        0x7fff_ffff_ffff_ffff,
        0x8000_0000_0000_0000,
        0x8000_0000_0000_0001,
        u64::MAX,
    ];

    fn operands() -> impl Iterator<Item = u128> + Clone {
        EDGES
            .into_iter()
            .flat_map(|high| EDGES.into_iter().map(move |low| super::join(high, low)))
    }

    /// A fixed sequence whose members have every length from 1 to 128 bits.
    fn scattered() -> impl Iterator<Item = u128> + Clone {
        let mut state = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        (0..4_000_u32).map(move |i| {
            state = state
                .wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645)
                .wrapping_add(1);
            (state ^ (state >> 64)) >> (i % 128)
        })
    }

    fn assert_agrees(a: u128, b: u128) {
        assert_eq!(multiply(a, b), a.wrapping_mul(b), "{a} * {b}");
        if b == 0 {
            return;
        }
        let unsigned = divide(a, b);
        assert_eq!(
            (unsigned.quotient, unsigned.remainder),
            (a / b, a % b),
            "{a} / {b}"
        );
        let signed = divide_signed(a, b);
        let expected = (
            a.cast_signed()
                .wrapping_div(b.cast_signed())
                .cast_unsigned(),
            a.cast_signed()
                .wrapping_rem(b.cast_signed())
                .cast_unsigned(),
        );
        assert_eq!(
            (signed.quotient, signed.remainder),
            expected,
            "{a} / {b}, signed"
        );
    }

    #[test]
    fn agrees_with_the_native_operations_on_the_edges() {
        for a in operands() {
            for b in operands() {
                assert_agrees(a, b);
            }
        }
    }

    #[test]
    fn agrees_with_the_native_operations_on_scattered_operands() {
        for (a, b) in scattered().zip(scattered().skip(1)) {
            assert_agrees(a, b);
            assert_agrees(b, a);
        }
    }
}

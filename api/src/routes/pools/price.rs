//! Price: what a whole token of a pool is worth in the other, in decimal digits, without a float (pure).

use cpmm::PerToken;

/// Digits of a price that are shown: more than any two pools differ by in what they pay.
const SHOWN_DIGITS: usize = 12;

/// Most decimal places by which a reserve is extended: those of the largest power of ten in 128 bits.
const MOST_PLACES: u32 = 38;

/// The price of a whole token 0 in whole tokens 1, fees excluded, rounded down to twelve digits; `None` where a side is empty.
#[must_use]
pub fn price(reserves: PerToken<u64>, decimals: PerToken<u8>) -> Option<String> {
    if reserves.token_1 == 0 {
        return None;
    }
    // As far as 128 bits hold it, so that every quotient has more digits than are shown.
    let (extended, extended_by) = (0..=MOST_PLACES).rev().find_map(|places| {
        let power = 10_u128.checked_pow(places)?;
        Some((u128::from(reserves.token_1).checked_mul(power)?, places))
    })?;
    let quotient = extended.checked_div(u128::from(reserves.token_0))?;
    let digits = quotient.to_string();
    let places = i64::from(extended_by) + i64::from(decimals.token_1) - i64::from(decimals.token_0);
    Some(decimal(&digits, places))
}

/// Digits with a point before the last `places` of them, shortened to those that are shown.
fn decimal(digits: &str, places: i64) -> String {
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let whole = length.saturating_sub(places);
    let shown: String = digits.chars().take(SHOWN_DIGITS).collect();
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let Ok(whole_digits) = usize::try_from(whole) else {
        let fraction = format!("{}{shown}", zeros(whole.saturating_neg()));
        return format!("0.{}", fraction.trim_end_matches('0'));
    };
    let Some((before, after)) = shown.split_at_checked(whole_digits) else {
        let missing = whole.saturating_sub(i64::try_from(shown.len()).unwrap_or(i64::MAX));
        return format!("{shown}{}", zeros(missing));
    };
    let before = if before.is_empty() { "0" } else { before };
    match after.trim_end_matches('0') {
        "" => before.to_owned(),
        after => format!("{before}.{after}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reserves: (u64, u64), decimals: (u8, u8)) -> Option<String> {
        price(
            PerToken::new(reserves.0, reserves.1),
            PerToken::new(decimals.0, decimals.1),
        )
    }

    #[test]
    fn a_price_is_of_whole_tokens() {
        let text = |reserves, decimals| of(reserves, decimals).expect("a price");
        assert_eq!(text((1_000, 1_000), (6, 6)), "1");
        assert_eq!(text((1_000, 2_500), (6, 6)), "2.5");
        // 10 SOL against 1,500 of a token of six places.
        assert_eq!(text((10_000_000_000, 1_500_000_000), (9, 6)), "150");
        assert_eq!(
            text((1_500_000_000, 10_000_000_000), (6, 9)),
            "0.00666666666666"
        );
        assert_eq!(text((3, 1), (0, 0)), "0.333333333333");
        assert_eq!(text((1, 3), (0, 0)), "3");
        assert_eq!(text((1, u64::MAX), (0, 0)), "18446744073700000000");
        assert_eq!(
            text((u64::MAX, 1), (0, 0)),
            "0.0000000000000000000542101086242"
        );
        assert_eq!(text((1, 1), (9, 0)), "1000000000");
        assert_eq!(text((1, 1), (0, 9)), "0.000000001");
    }

    #[test]
    fn an_empty_side_has_no_price() {
        assert_eq!(of((0, 5), (6, 6)), None);
        assert_eq!(of((5, 0), (6, 6)), None);
    }
}

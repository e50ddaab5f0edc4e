//! Compute unit price under a ceiling of the priority fee, and the fee that follows from it (pure).

/// Micro-lamports in a lamport.
const MICRO_LAMPORTS: u128 = 1_000_000;

/// The highest unit price, in micro-lamports, whose fee for `unit_limit` units does not exceed
/// `priority_fee` lamports. Rounded down; the chain rounds the fee up to a whole lamport, so the fee
/// never passes the ceiling.
#[must_use]
pub fn unit_price(priority_fee: u64, unit_limit: u32) -> u64 {
    let micro = u128::from(priority_fee).saturating_mul(MICRO_LAMPORTS);
    let price = micro.checked_div(u128::from(unit_limit)).unwrap_or(0);
    u64::try_from(price).unwrap_or(u64::MAX)
}

/// What the chain charges for priority, lamports: price times limit, whatever was used, rounded up.
#[must_use]
pub fn priority_fee(unit_price: u64, unit_limit: u32) -> u64 {
    let micro = u128::from(unit_price).saturating_mul(u128::from(unit_limit));
    u64::try_from(micro.div_ceil(MICRO_LAMPORTS)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_priority_fee_is_a_ceiling_and_no_higher_price_fits(
            fee in prop_oneof![0..1_000_000u64, any::<u64>()],
            limit in 1..1_400_000u32,
        ) {
            let price = unit_price(fee, limit);
            prop_assert!(priority_fee(price, limit) <= fee);
            if let Some(next) = price.checked_add(1) {
                prop_assert!(priority_fee(next, limit) > fee || fee == u64::MAX);
            }
        }
    }
}

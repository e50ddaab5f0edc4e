//! Units of the arithmetic: token amounts, basis points and fee rates.

use std::fmt;

/// A quantity of one token in its smallest units, 0 to 2^64 − 1. What token it is of, the name of the
/// value says. Account layouts keep plain integers, as the accounts do; arithmetic has this type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The most that a token account can hold.
    pub const MAX: Self = Self(u64::MAX);

    /// A quantity of this many smallest units.
    #[must_use]
    pub const fn new(units: u64) -> Self {
        Self(units)
    }

    /// The number of smallest units.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, or `None` above [`Amount::MAX`].
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The difference, or `None` below zero.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<Amount> for u128 {
    fn from(amount: Amount) -> Self {
        Self::from(amount.0)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Hundredths of a percent, 0 to 10,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BasisPoints(u16);

impl BasisPoints {
    /// One hundred percent.
    pub const MAX: Self = Self(10_000);

    /// The value, or `None` above 10,000.
    #[must_use]
    pub const fn new(value: u16) -> Option<Self> {
        if value <= Self::MAX.0 {
            Some(Self(value))
        } else {
            None
        }
    }

    /// The number of basis points.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A fee in millionths of an amount, as AmmConfig stores it. The exchange keeps rates at or below
/// 1,000,000; larger values read from an account are carried and lead to a refusal, not to a panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeeRate(pub u64);

impl FeeRate {
    /// Denominator of every rate.
    pub const DENOMINATOR: u128 = 1_000_000;

    /// No fee.
    pub const ZERO: Self = Self(0);

    /// `amount × rate`, rounded up. Saturates, which only ever exceeds any real amount.
    #[must_use]
    pub const fn ceil_of(self, amount: u128) -> u128 {
        ceil_per_million(amount, self.0 as u128)
    }

    /// `amount × rate`, rounded down. Saturates.
    #[must_use]
    pub const fn floor_of(self, amount: u128) -> u128 {
        match amount
            .saturating_mul(self.0 as u128)
            .checked_div(Self::DENOMINATOR)
        {
            Some(part) => part,
            None => 0,
        }
    }
}

/// `amount × millionths / 1,000,000`, rounded up; saturating.
pub(crate) const fn ceil_per_million(amount: u128, millionths: u128) -> u128 {
    amount
        .saturating_mul(millionths)
        .div_ceil(FeeRate::DENOMINATOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basis_points_stop_at_one_hundred_percent() {
        assert_eq!(BasisPoints::new(10_000), Some(BasisPoints::MAX));
        assert_eq!(BasisPoints::new(10_001), None);
    }

    #[test]
    fn rates_round_as_named() {
        let rate = FeeRate(2_500);
        assert_eq!((rate.floor_of(1), rate.ceil_of(1)), (0, 1));
        assert_eq!((rate.floor_of(400), rate.ceil_of(400)), (1, 1));
        assert_eq!(FeeRate::ZERO.ceil_of(u128::MAX), 0);
    }
}

//! Token-2022 transfer fees.
//!
//! Follows `interface/src/extension/transfer_fee/mod.rs` of `solana-program/token-2022`.

use crate::units::BasisPoints;

/// One fee schedule of a mint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferFee {
    /// First epoch in which it applies.
    pub epoch: u64,
    /// Cap of the fee of one transfer, smallest units.
    pub maximum_fee: u64,
    /// Fee in hundredths of a percent; the token program keeps it at or below 10,000.
    pub basis_points: u16,
}

impl TransferFee {
    /// Fee withheld from a transfer of `amount`: rounded up, capped, never above `amount` for a rate
    /// the token program allows.
    #[must_use]
    pub fn of(&self, amount: u64) -> u64 {
        let denominator = u128::from(BasisPoints::MAX.get());
        let fee = u128::from(amount)
            .saturating_mul(u128::from(self.basis_points))
            .div_ceil(denominator);
        u64::try_from(fee).unwrap_or(u64::MAX).min(self.maximum_fee)
    }
}

/// The two schedules of a mint: the one in force and the one announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferFeeConfig {
    /// Applies before `newer.epoch`.
    pub older: TransferFee,
    /// Applies from `newer.epoch` on.
    pub newer: TransferFee,
}

impl TransferFeeConfig {
    /// The schedule in force in `epoch`.
    #[must_use]
    pub const fn at(&self, epoch: u64) -> &TransferFee {
        if epoch >= self.newer.epoch {
            &self.newer
        } else {
            &self.older
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fee(basis_points: u16, maximum_fee: u64) -> TransferFee {
        TransferFee {
            epoch: 0,
            maximum_fee,
            basis_points,
        }
    }

    #[test]
    fn fees_round_up_and_stop_at_the_cap() {
        assert_eq!(fee(1, u64::MAX).of(1), 1);
        assert_eq!(fee(100, u64::MAX).of(10_000), 100);
        assert_eq!(fee(100, u64::MAX).of(10_001), 101);
        assert_eq!(fee(10_000, u64::MAX).of(u64::MAX), u64::MAX);
        assert_eq!(fee(10_000, 7).of(u64::MAX), 7);
        assert_eq!(fee(0, u64::MAX).of(u64::MAX), 0);
        assert_eq!(fee(500, u64::MAX).of(0), 0);
    }

    #[test]
    fn the_newer_schedule_begins_with_its_epoch() {
        let config = TransferFeeConfig {
            older: fee(1, 1),
            newer: TransferFee {
                epoch: 10,
                ..fee(2, 2)
            },
        };
        assert_eq!(config.at(9).basis_points, 1);
        assert_eq!(config.at(10).basis_points, 2);
    }
}

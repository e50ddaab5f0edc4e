//! Transfer fees of Token-2022 mints: which of two schedules applies, and what a transfer costs.
//!
//! Follows `interface/src/extension/transfer_fee/mod.rs` of `solana-program/token-2022`.

use crate::{
    refusal::Refusal,
    units::{Amount, BasisPoints},
};

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
    pub fn of(&self, amount: Amount) -> Amount {
        let denominator = u128::from(BasisPoints::MAX.get());
        let fee = u128::from(amount)
            .saturating_mul(u128::from(self.basis_points))
            .div_ceil(denominator);
        Amount::new(u64::try_from(fee).unwrap_or(u64::MAX).min(self.maximum_fee))
    }

    /// Fee that must be added to `net` so that `net` arrives: the exchange's reading of Token-2022's
    /// inverse, which is refused where the fee of the sum is not that fee again.
    ///
    /// # Errors
    /// [`Refusal::TransferFeeMismatch`] where no amount leaves exactly `net`, [`Refusal::Overflow`]
    /// where the sum leaves 64 bits.
    pub fn inverse_of(&self, net: Amount) -> Result<Amount, Refusal> {
        let whole = u64::from(BasisPoints::MAX.get());
        let kept = whole.saturating_sub(u64::from(self.basis_points));
        let fee = match u128::from(net)
            .saturating_mul(u128::from(whole))
            .checked_next_multiple_of(u128::from(kept))
            .and_then(|product| product.checked_div(u128::from(kept)))
        {
            // The whole transfer is withheld, up to the cap.
            None => Amount::new(self.maximum_fee),
            Some(gross) => {
                let raised = gross.saturating_sub(u128::from(net));
                let raised = u64::try_from(raised).unwrap_or(u64::MAX);
                let gross = net
                    .checked_add(Amount::new(raised.min(self.maximum_fee)))
                    .ok_or(Refusal::Overflow)?;
                self.of(gross)
            }
        };
        let gross = net.checked_add(fee).ok_or(Refusal::Overflow)?;
        if self.of(gross) == fee {
            Ok(fee)
        } else {
            Err(Refusal::TransferFeeMismatch)
        }
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
        let of = |fee: TransferFee, amount| fee.of(Amount::new(amount)).get();
        assert_eq!(of(fee(1, u64::MAX), 1), 1);
        assert_eq!(of(fee(100, u64::MAX), 10_000), 100);
        assert_eq!(of(fee(100, u64::MAX), 10_001), 101);
        assert_eq!(of(fee(10_000, u64::MAX), u64::MAX), u64::MAX);
        assert_eq!(of(fee(10_000, 7), u64::MAX), 7);
        assert_eq!(of(fee(0, u64::MAX), u64::MAX), 0);
        assert_eq!(of(fee(500, u64::MAX), 0), 0);
    }

    #[test]
    fn the_inverse_leaves_exactly_the_net_amount() {
        for (basis_points, cap) in [(0, u64::MAX), (1, u64::MAX), (100, 5_000), (9_999, 77)] {
            let fee = fee(basis_points, cap);
            for net in [1, 2, 99, 10_000, 1_000_003, u64::from(u32::MAX)].map(Amount::new) {
                let added = fee.inverse_of(net).expect("reachable");
                let gross = net.checked_add(added).expect("it fits");
                assert_eq!(gross.saturating_sub(fee.of(gross)), net, "{fee:?} {net}");
            }
        }
    }

    #[test]
    fn a_fee_of_the_whole_transfer_has_an_inverse_only_by_its_cap() {
        let net = Amount::new(100);
        assert_eq!(fee(10_000, 7).inverse_of(net), Ok(Amount::new(7)));
        assert_eq!(
            fee(10_000, u64::MAX).inverse_of(net),
            Err(Refusal::Overflow)
        );
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

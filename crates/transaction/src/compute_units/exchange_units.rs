//! Units of the exchange in one transaction: what the profile says of its swaps, and the limit that was learned.

use super::calibration::Limit;

/// All swaps of a transaction together, without the guard's own part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeUnits {
    /// What the profile says.
    pub modelled: u32,
    /// What they may use, as the chain has shown.
    pub learned: u32,
    /// Swaps of the chain that this rests on: of two shapes, those of the one that was seen less often.
    pub samples: u32,
}

impl ExchangeUnits {
    /// Of one swap, for which the profile says `modelled`.
    #[must_use]
    pub const fn of(modelled: u32, limit: Limit) -> Self {
        Self {
            modelled,
            learned: limit.units,
            samples: limit.samples,
        }
    }

    /// With a second swap.
    #[must_use]
    pub fn and(self, second: Self) -> Self {
        Self {
            modelled: self.modelled.saturating_add(second.modelled),
            learned: self.learned.saturating_add(second.learned),
            samples: self.samples.min(second.samples),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_swaps_rest_on_the_shape_that_was_seen_less() {
        let units = |modelled, samples| ExchangeUnits {
            modelled,
            learned: modelled * 2,
            samples,
        };
        let both = ExchangeUnits {
            modelled: 30,
            learned: 60,
            samples: 5,
        };
        assert_eq!(units(10, 5).and(units(20, 9)), both);
        assert_eq!(units(10, 9).and(units(20, 5)), both);
    }
}

//! Half window: the highest ratios of used to modelled units that distinct pools have shown since it began.

use std::time::Duration;

use solana_pubkey::Pubkey;

/// Used units over modelled ones, in thousandths, rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio(pub u32);

impl Ratio {
    /// What a limit allows above the model before anything is learned: 5 %.
    pub const COLD_START: Self = Self(1_050);

    /// Of `used` units where the model says `modelled`.
    #[must_use]
    pub fn of(used: u32, modelled: u32) -> Self {
        let thousandths = u64::from(used)
            .saturating_mul(1_000)
            .div_ceil(u64::from(modelled.max(1)));
        Self(u32::try_from(thousandths).unwrap_or(u32::MAX))
    }

    pub(super) const fn plus(self, thousandths: u32) -> Self {
        Self(self.0.saturating_add(thousandths))
    }

    pub(super) const fn minus(self, thousandths: u32) -> Self {
        Self(self.0.saturating_sub(thousandths))
    }
}

/// Enough samples for a half window that is as long as [`SHORT`].
const MANY_SAMPLES: u32 = 128;

/// Time in which prices and pools vary enough to be representative.
const SHORT: Duration = Duration::from_secs(10 * 60);

/// Enough samples for a half window that is as long as [`LONG`], of a shape that is seldom traded.
pub(super) const FEW_SAMPLES: u32 = 30;

/// After which a few samples must do.
const LONG: Duration = Duration::from_secs(6 * 60 * 60);

/// Two highest pools are enough to know the second highest of two halves: what is second in both together is first or
/// second in one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HalfWindow {
    /// When it began, as time since 1970.
    pub(super) began: Duration,
    pub(super) samples: u32,
    /// Distinct pools, highest first.
    pub(super) highest: Vec<(Pubkey, Ratio)>,
}

impl HalfWindow {
    pub(super) const fn new(began: Duration) -> Self {
        Self {
            began,
            samples: 0,
            highest: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, pool: Pubkey, ratio: Ratio) {
        self.samples = self.samples.saturating_add(1);
        merge(&mut self.highest, pool, ratio);
    }

    /// Whether it has seen enough to be a half of its own.
    pub(super) fn is_full(&self, now: Duration) -> bool {
        let age = now.saturating_sub(self.began);
        (self.samples >= MANY_SAMPLES && age >= SHORT)
            || (self.samples >= FEW_SAMPLES && age >= LONG)
    }
}

/// The second highest ratio of distinct pools in two halves; `None` while there is but one pool.
pub(super) fn second_highest(halves: [&HalfWindow; 2]) -> Option<Ratio> {
    let mut highest = Vec::with_capacity(2);
    for (pool, ratio) in halves.into_iter().flat_map(|half| &half.highest) {
        merge(&mut highest, *pool, *ratio);
    }
    highest.get(1).map(|(_, ratio)| *ratio)
}

fn merge(highest: &mut Vec<(Pubkey, Ratio)>, pool: Pubkey, ratio: Ratio) {
    match highest.iter_mut().find(|(known, _)| *known == pool) {
        Some((_, most)) => *most = ratio.max(*most),
        None => highest.push((pool, ratio)),
    }
    highest.sort_by_key(|(_, ratio)| std::cmp::Reverse(*ratio));
    highest.truncate(2);
}

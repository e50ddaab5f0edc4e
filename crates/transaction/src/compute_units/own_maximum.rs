//! Own maxima: the highest ratio that each pool has shown lately, which counts for that pool alone.

use std::{collections::HashMap, time::Duration};

use solana_pubkey::Pubkey;

use super::half_window::Ratio;

/// How long at least a pool's own maximum counts for itself.
const OWN_MAXIMUM: Duration = Duration::from_secs(20 * 60);

/// Pools whose own maximum is kept; more are not traded in twice [`OWN_MAXIMUM`] on mainnet. Those beyond are as dear as
/// their shape.
const MOST_POOLS: usize = 100_000;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnMaxima {
    pools: HashMap<Pubkey, OwnMaximum>,
    /// The span in which the old ones were dropped last: that walks over all, so it is done once in a span.
    swept: u64,
}

impl OwnMaxima {
    pub(super) fn add(&mut self, pool: Pubkey, ratio: Ratio, now: Duration) {
        if let Some(own) = self.pools.get_mut(&pool) {
            own.add(ratio, now);
            return;
        }
        if self.pools.len() >= MOST_POOLS && self.swept != span(now) {
            self.swept = span(now);
            self.pools.retain(|_, own| own.at(now) > Ratio::default());
        }
        if self.pools.len() < MOST_POOLS {
            let mut own = OwnMaximum::new(now);
            own.add(ratio, now);
            self.pools.insert(pool, own);
        }
    }

    /// The pool's own maximum; zero where it has shown nothing lately.
    pub(super) fn of(&self, pool: &Pubkey, now: Duration) -> Ratio {
        let own = self.pools.get(pool).map(|own| own.at(now));
        own.unwrap_or_default()
    }
}

/// The highest ratio of one pool in this span of [`OWN_MAXIMUM`] and in the one before.
#[derive(Clone, Copy, Debug)]
struct OwnMaximum {
    span: u64,
    current: Ratio,
    before: Ratio,
}

impl OwnMaximum {
    fn new(now: Duration) -> Self {
        Self {
            span: span(now),
            current: Ratio::default(),
            before: Ratio::default(),
        }
    }

    fn add(&mut self, ratio: Ratio, now: Duration) {
        let this = span(now);
        if this != self.span {
            self.before = match this.checked_sub(self.span) {
                Some(1) => self.current,
                _ => Ratio::default(),
            };
            (self.span, self.current) = (this, Ratio::default());
        }
        self.current = self.current.max(ratio);
    }

    fn at(&self, now: Duration) -> Ratio {
        match span(now).saturating_sub(self.span) {
            0 => self.current.max(self.before),
            1 => self.current,
            _ => Ratio::default(),
        }
    }
}

fn span(now: Duration) -> u64 {
    now.as_secs()
        .checked_div(OWN_MAXIMUM.as_secs())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(number: usize) -> Pubkey {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Pubkey::new_from_array(bytes)
    }

    #[test]
    fn more_pools_than_are_kept_take_no_more_memory_and_old_ones_make_room() {
        let mut maxima = OwnMaxima::default();
        let begun = OWN_MAXIMUM * 10;
        for number in 0..=MOST_POOLS {
            maxima.add(pool(number), Ratio(1_200), begun);
        }
        assert_eq!(maxima.pools.len(), MOST_POOLS);
        assert_eq!(maxima.of(&pool(0), begun), Ratio(1_200));
        assert_eq!(maxima.of(&pool(MOST_POOLS), begun), Ratio(0));
        let later = begun + OWN_MAXIMUM * 2;
        maxima.add(pool(MOST_POOLS), Ratio(1_300), later);
        assert_eq!(maxima.of(&pool(MOST_POOLS), later), Ratio(1_300));
        assert_eq!(maxima.pools.len(), 1);
    }
}

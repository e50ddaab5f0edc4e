//! Own maxima: the highest ratio that each pool has shown lately, which counts for that pool alone.

use std::{collections::HashMap, time::Duration};

use solana_pubkey::Pubkey;

use super::half_window::Ratio;

/// How long at least a pool's own maximum counts for itself, and how much longer at most: a span.
const OWN_MAXIMUM: Duration = Duration::from_secs(20 * 60);
const SPAN: Duration = Duration::from_secs(5 * 60);

/// As many spans as [`OWN_MAXIMUM`] has, and the one that has begun.
const SPANS: usize = 5;

const _: () = assert!(OWN_MAXIMUM.as_secs() == SPAN.as_secs() * (SPANS as u64 - 1));

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

/// The highest ratio of one pool in its last span and in those before it, the newest first.
#[derive(Clone, Copy, Debug)]
struct OwnMaximum {
    span: u64,
    highest: [Ratio; SPANS],
}

impl OwnMaximum {
    fn new(now: Duration) -> Self {
        Self {
            span: span(now),
            highest: [Ratio::default(); SPANS],
        }
    }

    fn add(&mut self, ratio: Ratio, now: Duration) {
        let passed = self.passed(now);
        self.highest.rotate_right(passed);
        for begun in self.highest.iter_mut().take(passed) {
            *begun = Ratio::default();
        }
        self.span = self.span.max(span(now));
        let [newest, ..] = &mut self.highest;
        *newest = ratio.max(*newest);
    }

    fn at(&self, now: Duration) -> Ratio {
        let still = SPANS.saturating_sub(self.passed(now));
        let still = self.highest.iter().take(still);
        still.copied().max().unwrap_or_default()
    }

    /// Spans that have begun since its last one, as far as they matter.
    fn passed(&self, now: Duration) -> usize {
        let passed = span(now).saturating_sub(self.span);
        usize::try_from(passed).map_or(SPANS, |passed| passed.min(SPANS))
    }
}

fn span(now: Duration) -> u64 {
    now.as_secs().checked_div(SPAN.as_secs()).unwrap_or(0)
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
        let later = begun + OWN_MAXIMUM + SPAN;
        maxima.add(pool(MOST_POOLS), Ratio(1_300), later);
        assert_eq!(maxima.of(&pool(MOST_POOLS), later), Ratio(1_300));
        assert_eq!(maxima.pools.len(), 1);
    }

    #[test]
    fn a_maximum_counts_for_twenty_minutes_and_for_no_more_than_a_span_longer() {
        for second in [0, 1, 150, 299] {
            let shown = OWN_MAXIMUM * 10 + Duration::from_secs(second);
            let mut maxima = OwnMaxima::default();
            maxima.add(pool(1), Ratio(1_200), shown);
            // Later ones, which are lower, do not end it.
            let later = [SPAN, SPAN * 3, OWN_MAXIMUM - Duration::from_secs(1)];
            for after in later {
                maxima.add(pool(1), Ratio(900), shown + after);
                assert_eq!(maxima.of(&pool(1), shown + after), Ratio(1_200), "{second}");
            }
            let end = shown + OWN_MAXIMUM;
            assert_eq!(maxima.of(&pool(1), end), Ratio(1_200), "{second}");
            assert_eq!(maxima.of(&pool(1), end + SPAN), Ratio(900), "{second}");
            assert_eq!(maxima.of(&pool(1), end * 2), Ratio(0), "{second}");
        }
    }
}

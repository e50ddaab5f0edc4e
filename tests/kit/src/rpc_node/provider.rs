//! Provider: a gateway in front of the node that refuses, loses and delays calls, and limits lists of accounts.
//!
//! It stands for nodes that are sold by the call, and for their calls that read accounts; others pass it. It is stricter:
//! calls are refused however few are made and however long one waits, every second time without saying for how long; an
//! answer that is lost is lost in its middle, after it took its whole time; and a list beyond the limit is refused as a
//! whole, late, as if it had been read.

use std::time::Duration;

/// What a gateway does to calls.
#[derive(Clone, Debug)]
pub struct Provider {
    /// Of so many calls one is refused with 429; 0 for none.
    pub refuses_one_in: u64,
    /// Of so many answers one breaks off in its middle; 0 for none.
    pub drops_one_in: u64,
    /// Longest time until an answer begins. Lists take it all, other calls any part of it.
    pub slowest: Duration,
    /// Calls under way at a time; further ones are refused with 429.
    pub parallel: usize,
    /// Most accounts in a list.
    pub most_listed: usize,
    /// Begins the random numbers.
    pub seed: u64,
}

/// How often a provider did what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProviderCounts {
    /// Calls that were let through to the node.
    pub passed: u64,
    /// Calls refused at random.
    pub refused: u64,
    /// Calls refused because too many were under way.
    pub crowded: u64,
    /// Answers that broke off.
    pub dropped: u64,
    /// Lists that were too long.
    pub too_long: u64,
}

/// Seconds that a refusal asks to wait, where it says so.
const RETRY_AFTER: &str = "1";

/// Time of a refusal.
const REFUSAL_TIME: Duration = Duration::from_millis(2);

/// A provider and what it is doing. It knows no time: who asks it waits as long as it says, on any clock.
#[derive(Debug)]
pub struct Gateway {
    provider: Provider,
    calls: u64,
    under_way: usize,
    counts: ProviderCounts,
}

/// What happens to a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is refused for the rate of calls, after this time, with these seconds to wait.
    Refused(Duration, Option<&'static str>),
    /// It is answered after this time.
    Passed {
        /// Time until the answer begins.
        delay: Duration,
        /// Whether the answer breaks off.
        drops: bool,
    },
}

impl Gateway {
    /// One that has had no call yet.
    #[must_use]
    pub fn new(provider: Provider) -> Self {
        Self {
            provider,
            calls: 0,
            under_way: 0,
            counts: ProviderCounts::default(),
        }
    }

    /// How often it did what.
    #[must_use]
    pub const fn counts(&self) -> ProviderCounts {
        self.counts
    }

    /// Decides about a call. One that passes must be [`Gateway::ended`].
    pub fn judge(&mut self, lists: bool) -> Verdict {
        self.calls += 1;
        let retry_after = self.calls.is_multiple_of(2).then_some(RETRY_AFTER);
        if self.under_way >= self.provider.parallel {
            self.counts.crowded += 1;
            return Verdict::Refused(REFUSAL_TIME, retry_after);
        }
        let [refuse, drop, time] = [0, 1, 2].map(|use_| self.random(use_));
        let one_in = |random: u64, n: u64| n > 0 && random.is_multiple_of(n);
        if one_in(refuse, self.provider.refuses_one_in) {
            self.counts.refused += 1;
            return Verdict::Refused(REFUSAL_TIME, retry_after);
        }
        self.under_way += 1;
        self.counts.passed += 1;
        let drops = one_in(drop, self.provider.drops_one_in);
        self.counts.dropped += u64::from(drops);
        let percent = if lists { 100 } else { time % 101 };
        let percent = u32::try_from(percent).unwrap_or(100);
        let delay = self.provider.slowest * percent / 100;
        Verdict::Passed { delay, drops }
    }

    /// A call that had passed is over.
    pub const fn ended(&mut self) {
        self.under_way -= 1;
    }

    /// Whether a list of this length is sent.
    pub const fn sends(&mut self, length: usize) -> bool {
        let sends = length <= self.provider.most_listed;
        if !sends {
            self.counts.too_long += 1;
        }
        sends
    }

    /// A number that looks random, the same in every run for one use by one call.
    const fn random(&self, use_: u64) -> u64 {
        let state = self.provider.seed.wrapping_add(self.calls * 3 + use_);
        let mut mixed = state.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_fare_as_often_well_and_badly_as_is_asked_for() {
        let mut gateway = Gateway::new(Provider {
            refuses_one_in: 3,
            drops_one_in: 50,
            slowest: Duration::from_secs(40),
            parallel: 2,
            most_listed: 10,
            seed: 1,
        });
        let mut slowest = Duration::ZERO;
        for _ in 0..30_000 {
            if let Verdict::Passed { delay, .. } = gateway.judge(false) {
                slowest = slowest.max(delay);
                gateway.ended();
            }
        }
        assert_eq!(slowest, Duration::from_secs(40));
        let counts = gateway.counts;
        assert!((9_700..10_300).contains(&counts.refused), "{counts:?}");
        assert!((350..450).contains(&counts.dropped), "{counts:?}");
        assert_eq!(counts.crowded, 0);
        while gateway.under_way < 2 {
            gateway.judge(true);
        }
        let Verdict::Refused(_, first) = gateway.judge(false) else {
            panic!("a third call was taken");
        };
        let Verdict::Refused(_, second) = gateway.judge(false) else {
            panic!("a fourth call was taken");
        };
        assert_ne!(first, second, "every second one says how long to wait");
        assert!(gateway.sends(10) && !gateway.sends(11));
    }
}

//! Exponential back-off with jitter for lost connections.

use std::time::Duration;

/// Shortest pause: long enough that a refused connection does not spin a core.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause: an upstream that returns is noticed within this time.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Doubling, capped, jittered pauses. It never gives up: a service that stopped trying would need a
/// person to restart it.
#[derive(Debug)]
pub struct Backoff {
    attempt: u32,
    longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    /// A back-off whose next pause is the shortest one.
    #[must_use]
    pub const fn new() -> Self {
        Self::up_to(LONGEST_PAUSE)
    }

    /// A back-off of which no pause is longer than this.
    #[must_use]
    pub const fn up_to(longest: Duration) -> Self {
        Self {
            attempt: 0,
            longest,
        }
    }

    /// The pause before the next attempt. `random` is any uniformly drawn number: the pause is
    /// spread over the upper half of its range, so that many clients do not return in step.
    pub fn next_pause(&mut self, random: u32) -> Duration {
        let doubled =
            FIRST_PAUSE.saturating_mul(1u32.checked_shl(self.attempt).unwrap_or(u32::MAX));
        let ceiling = doubled.min(self.longest);
        self.attempt = self.attempt.saturating_add(1);
        let half = ceiling / 2;
        half + half.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// Called once a connection has proved useful, so that the next loss starts from a short pause.
    pub fn reset(&mut self) {
        self.attempt = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap_and_restart_after_reset() {
        let mut backoff = Backoff::new();
        let pauses: Vec<_> = (0..9).map(|_| backoff.next_pause(u32::MAX)).collect();
        assert_eq!(pauses[0], FIRST_PAUSE);
        assert_eq!(pauses[1], FIRST_PAUSE * 2);
        assert_eq!(pauses[8], LONGEST_PAUSE);
        backoff.reset();
        assert_eq!(backoff.next_pause(u32::MAX), FIRST_PAUSE);
    }

    #[test]
    fn no_pause_is_longer_than_the_longest() {
        let longest = FIRST_PAUSE * 3;
        let mut backoff = Backoff::up_to(longest);
        let pauses: Vec<_> = (0..4).map(|_| backoff.next_pause(u32::MAX)).collect();
        assert_eq!(pauses, [FIRST_PAUSE, FIRST_PAUSE * 2, longest, longest]);
    }

    #[test]
    fn jitter_keeps_at_least_half_of_the_pause_however_long_it_runs() {
        let mut backoff = Backoff::new();
        assert_eq!(backoff.next_pause(0), FIRST_PAUSE / 2);
        for _ in 0..100 {
            backoff.next_pause(0);
        }
        assert_eq!(backoff.next_pause(0), LONGEST_PAUSE / 2);
    }
}

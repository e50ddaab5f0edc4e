//! Pace of calls: how many may be in flight, learnt from how many the node refuses for their rate (pure).
//!
//! The limit grows by one and is halved, as in congestion control, but a single refusal says nothing here: some providers
//! refuse a share of all calls whatever their number. So the share of a whole window counts, and a halving that does not
//! lower it is undone.

use std::{mem, time::Duration};

use service_kit::Backoff;
use tokio::time::Instant;

/// Calls in flight at first: enough to hide the round trip, few enough for the rate limits of shared nodes.
const FIRST_LIMIT: usize = 8;

/// Fewest answers that a window is judged by: the share of fewer is chance.
const MIN_WINDOW: usize = 32;

/// Share of refusals, above what is refused at any load, from which half as many calls are tried.
const TOLERANCE: f64 = 0.2;

/// Part of its former value below which the share of refusals must fall for a halving to have helped.
const HELPED: f64 = 2.0 / 3.0;

/// Share of refusals that is never taken for unavoidable: where more than half is refused, fewer calls are right
/// whatever the reason.
const MOST_UNAVOIDABLE: f64 = 0.5;

/// Weight of a window in what is taken for unavoidable, when it was better.
const FORGETTING: f64 = 0.125;

/// Refusals in a row, without one answer between them, after which no call is begun for a time. Where one of three calls
/// is refused at random, so many come once in six thousand calls.
const REFUSALS_THAT_CLOSE: u32 = 8;

/// Longest pause after a refusal before the next call, unless one in flight is answered before: a node that has no room
/// has none until then, and one that refuses at random loses little.
const PAUSE_AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// How many calls may be in flight, and until when none may begin.
pub(super) struct Pace {
    limit: usize,
    most: usize,
    window: Window,
    judgement: Judgement,
    /// Share of refusals that no smaller load avoids.
    unavoidable: f64,
    refused_in_a_row: u32,
    backoff: Backoff,
    closed_until: Option<Instant>,
    /// End of the pause after the last refusal, unless a call was answered since.
    pause_until: Option<Instant>,
}

/// What is held of the load.
enum Judgement {
    /// It may grow.
    Bearable,
    /// One window had this share of refusals, which may be chance.
    Suspect(f64),
    /// It was halved from this limit, at this share of refusals, to see whether that helps.
    Halved(usize, f64),
}

/// Answers and refusals since the last judgement.
#[derive(Default)]
struct Window {
    answered: u32,
    refused: u32,
}

impl Window {
    fn is_full(&self, limit: usize) -> bool {
        usize::try_from(self.answered + self.refused).is_ok_and(|all| all >= limit.max(MIN_WINDOW))
    }

    fn share_refused(&self) -> f64 {
        f64::from(self.refused) / f64::from((self.answered + self.refused).max(1))
    }
}

impl Pace {
    /// A pace of at most this many calls in flight, at least one.
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1);
        Self {
            limit: FIRST_LIMIT.min(most),
            most,
            window: Window::default(),
            judgement: Judgement::Bearable,
            unavoidable: 0.0,
            refused_in_a_row: 0,
            backoff: Backoff::new(),
            closed_until: None,
            pause_until: None,
        }
    }

    /// Calls that may be in flight.
    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// When the next call may begin, while this many are in flight: `None` when one of them must end first.
    pub(super) fn next_at(&self, in_flight: usize, now: Instant) -> Option<Instant> {
        let begins_at = Some(now).max(self.closed_until).max(self.pause_until);
        begins_at.filter(|_| in_flight < self.limit)
    }

    /// A call was taken and is over, well or not.
    pub(super) fn answered(&mut self) {
        self.refused_in_a_row = 0;
        self.pause_until = None;
        self.backoff.reset();
        self.window.answered += 1;
        self.judge();
    }

    /// A call was refused for the rate of calls. `random` is any uniformly drawn number.
    pub(super) fn refused(&mut self, now: Instant, retry_after: Option<Duration>, random: u32) {
        self.refused_in_a_row += 1;
        self.window.refused += 1;
        self.pause_until = Some(now + PAUSE_AFTER_REFUSAL);
        if self.refused_in_a_row >= REFUSALS_THAT_CLOSE {
            self.refused_in_a_row = 0;
            let pause = self.backoff.next_pause(random);
            let until = now + pause.max(retry_after.unwrap_or_default());
            self.closed_until = self.closed_until.max(Some(until));
        }
        self.judge();
    }

    fn judge(&mut self) {
        if !self.window.is_full(self.limit) {
            return;
        }
        let share = mem::take(&mut self.window).share_refused();
        let is_high = share > self.unavoidable + TOLERANCE;
        self.judgement = match mem::replace(&mut self.judgement, Judgement::Bearable) {
            Judgement::Halved(limit, before) => {
                let fewer = share < before * HELPED;
                let more_answered = (1.0 - share) * HELPED > 1.0 - before;
                if !fewer && !more_answered && share <= MOST_UNAVOIDABLE {
                    self.limit = limit;
                    self.unavoidable = f64::midpoint(share, before).min(MOST_UNAVOIDABLE);
                }
                Judgement::Bearable
            }
            Judgement::Suspect(before) if is_high => {
                let limit = self.limit;
                self.limit = (limit / 2).max(1);
                Judgement::Halved(limit, f64::midpoint(share, before))
            }
            Judgement::Bearable if is_high => Judgement::Suspect(share),
            Judgement::Bearable | Judgement::Suspect(_) => {
                self.limit = (self.limit + 1).min(self.most);
                // What was unavoidable once need not be for ever.
                self.unavoidable -= (self.unavoidable - share).max(0.0) * FORGETTING;
                Judgement::Bearable
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits after each of many rounds, in which as many calls are made as may be in flight at once; `refuses` is asked
    /// for each of them by its number in the round and by a number drawn at random.
    fn limits(most: usize, rounds: u32, refuses: impl Fn(usize, u32) -> bool) -> Vec<usize> {
        let mut pace = Pace::new(most);
        let (mut now, mut seed) = (Instant::now(), 1_u32);
        let mut limits = Vec::new();
        for _ in 0..rounds {
            now += Duration::from_secs(1);
            for call in 0..pace.limit() {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if refuses(call, seed >> 8) {
                    pace.refused(now, None, 0);
                } else {
                    pace.answered();
                }
            }
            limits.push(pace.limit());
        }
        limits
    }

    fn average(limits: &[usize]) -> usize {
        limits.iter().sum::<usize>() / limits.len()
    }

    #[test]
    fn a_healthy_node_gets_all_that_is_allowed() {
        assert_eq!(limits(32, 100, |_, _| false).last(), Some(&32));
        assert_eq!(limits(1, 10, |_, _| false).last(), Some(&1));
        assert_eq!(limits(0, 10, |_, _| false).last(), Some(&1));
    }

    #[test]
    fn more_calls_than_a_node_takes_are_not_made_for_long() {
        for takes in [1, 3, 6, 20] {
            let limits = limits(64, 600, |call, _| call >= takes);
            let average = average(&limits[100..]);
            assert!(average <= takes + takes / 2 + 1, "{takes}: {average}");
            assert!(average >= takes.div_ceil(2), "{takes}: {average}");
        }
    }

    #[test]
    fn a_third_refused_at_random_hardly_lowers_the_pace() {
        let limits = limits(32, 600, |_, random| random % 3 == 0);
        let average = average(&limits[100..]);
        assert!(average >= 24, "{average}");
    }

    #[test]
    fn a_node_that_refuses_everything_is_left_alone_for_as_long_as_it_asks() {
        let (mut pace, now) = (Pace::new(8), Instant::now());
        let asked = Duration::from_secs(7);
        for _ in 1..REFUSALS_THAT_CLOSE {
            pace.refused(now, Some(asked), 0);
            assert_eq!(pace.next_at(0, now), Some(now + PAUSE_AFTER_REFUSAL));
        }
        pace.refused(now, Some(asked), 0);
        assert_eq!(pace.next_at(0, now), Some(now + asked));
        let later = now + 2 * asked;
        assert_eq!(pace.next_at(0, later), Some(later));
        assert_eq!(pace.next_at(pace.limit(), later), None);
    }

    #[test]
    fn an_answer_ends_a_row_of_refusals() {
        let (mut pace, now) = (Pace::new(8), Instant::now());
        for _ in 0..10 {
            for _ in 1..REFUSALS_THAT_CLOSE {
                pace.refused(now, None, 0);
            }
            pace.answered();
        }
        assert_eq!(pace.next_at(0, now), Some(now));
    }
}

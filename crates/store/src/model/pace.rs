//! Pace: turns at an even rate, of which all processes together take each once (pure).

use std::time::Duration;

use super::timestamp::Timestamp;

/// Microseconds of a second and of a millisecond: at a thousand turns a second a millisecond would be too coarse.
const SECOND: i64 = 1_000_000;
const MILLI: i64 = 1000;

/// How much further than it can be by this clock the next turn must lie to be taken for one of a clock that has jumped back:
/// nobody would have a turn before that time otherwise.
const CLOCK_JUMP: i64 = 10 * SECOND;

/// The turns that are still to be taken, the first of them at unix microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    first: i64,
    end: i64,
    per_second: i64,
}

impl Pace {
    /// The turns within `span` from `from`, at so many a second, where those before `next`, in unix microseconds, are taken.
    pub(crate) fn new(next: i64, per_second: u32, from: Timestamp, span: Duration) -> Self {
        let from_micros = micros(from);
        let end = micros(from.after(span));
        let jumped = next > end.saturating_add(CLOCK_JUMP);
        Self {
            first: if jumped {
                from_micros
            } else {
                next.max(from_micros)
            },
            end,
            per_second: i64::from(per_second.max(1)),
        }
    }

    /// How many there are.
    pub(crate) fn turns(self) -> u32 {
        let span = self.end.saturating_sub(self.first).max(0);
        let turns = span.saturating_mul(self.per_second);
        u32::try_from(turns.unsigned_abs().div_ceil(SECOND.unsigned_abs())).unwrap_or(u32::MAX)
    }

    /// When the turn after so many others is.
    pub(crate) fn turn(self, nth: u32) -> Timestamp {
        Timestamp::from_unix_millis(self.after(nth) / MILLI)
    }

    /// When the next one is where so many are taken, unix microseconds.
    pub(crate) fn after(self, turns: u32) -> i64 {
        let span = i64::from(turns).saturating_mul(SECOND) / self.per_second;
        self.first.saturating_add(span)
    }
}

fn micros(time: Timestamp) -> i64 {
    time.unix_millis().saturating_mul(MILLI)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(1);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_unix_millis(1_800_000_000_000 + millis)
    }

    #[test]
    fn turns_are_evenly_spread_and_taken_once_and_a_rest_saves_none_up() {
        let pace = Pace::new(0, 4, at(0), SPAN);
        assert_eq!(pace.turns(), 4);
        let turns: Vec<_> = (0..4).map(|nth| pace.turn(nth)).collect();
        assert_eq!(turns, [0, 250, 500, 750].map(at));
        let later = Pace::new(pace.after(4), 4, at(500), SPAN);
        assert_eq!(later.turns(), 2);
        assert_eq!(later.turn(0), at(1000));
        let all_taken = Pace::new(pace.after(4), 4, at(0), SPAN);
        assert_eq!(all_taken.turns(), 0);
        let rested = Pace::new(pace.after(4), 4, at(60_000), SPAN);
        assert_eq!((rested.turns(), rested.turn(0)), (4, at(60_000)));
    }

    #[test]
    fn a_rate_holds_over_any_time() {
        // Whoever looks as often as it likes gets no more than the rate, beyond what one look sees.
        for rate in [1, 3, 7, 1000] {
            let (mut next, mut taken) = (0, 0);
            for look in 0..10_000 {
                let pace = Pace::new(next, rate, at(look), SPAN);
                taken += pace.turns();
                next = pace.after(pace.turns());
            }
            assert!(
                (10 * rate..=11 * rate + 1).contains(&taken),
                "{taken} of {rate}"
            );
        }
    }

    #[test]
    fn a_clock_that_jumps_back_stops_nobody() {
        let pace = Pace::new(0, 4, at(3_600_000), SPAN);
        let back = Pace::new(pace.after(4), 4, at(0), SPAN);
        assert_eq!((back.turns(), back.turn(0)), (4, at(0)));
    }
}

//! Clock: the time of day, from the system, from a clock elsewhere that is followed, or set by a test.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// Passed to everything that needs the time of day, so that tests decide what time it is. Clones show the same time.
///
/// For how long something took there is `std::time::Instant`.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Set(Arc<Mutex<SystemTime>>),
    Followed(Arc<Followed>),
}

/// A clock that goes on from its last reading, however often the host's is set.
#[derive(Debug)]
struct Followed {
    host: Clock,
    reading: Mutex<Reading>,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    time: SystemTime,
    taken: Instant,
    /// Whether it is a clock's elsewhere, and not the host's at the start.
    elsewhere: bool,
}

impl Reading {
    fn now(self) -> SystemTime {
        self.time + self.taken.elapsed()
    }
}

impl Clock {
    /// The clock of the operating system.
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that shows `time` until it is set or advanced.
    #[must_use]
    pub fn stopped_at(time: SystemTime) -> Self {
        Self(Source::Set(Arc::new(Mutex::new(time))))
    }

    /// A clock that goes on from what `host` shows now, and is not set with it; [`Clock::follow`] sets it.
    #[must_use]
    pub fn independent_of(host: &Self) -> Self {
        let reading = Reading {
            time: host.now(),
            taken: Instant::now(),
            elsewhere: false,
        };
        Self(Source::Followed(Arc::new(Followed {
            host: host.clone(),
            reading: Mutex::new(reading),
        })))
    }

    /// Sets an independent clock to what a clock elsewhere showed at `taken`. Others stay as they are.
    pub fn follow(&self, time: SystemTime, taken: Instant) {
        if let Source::Followed(followed) = &self.0 {
            *followed
                .reading
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Reading {
                time,
                taken,
                elsewhere: true,
            };
        }
    }

    /// Has an independent clock that shows less go on from `time`, which is past. Others stay as they are.
    pub fn catch_up(&self, time: SystemTime) {
        if let Source::Followed(followed) = &self.0 {
            let mut reading = followed
                .reading
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if reading.now() < time {
                (reading.time, reading.taken) = (time, Instant::now());
            }
        }
    }

    /// The time of day as others know it, with which a receiver compares a signature's. Where [`Clock::now`] goes on
    /// from the host's clock as it was at the start, this is the host's as it is.
    #[must_use]
    pub fn time_of_day(&self) -> SystemTime {
        match &self.0 {
            Source::Followed(followed) => {
                let reading = followed.reading();
                if reading.elsewhere {
                    reading.now()
                } else {
                    followed.host.now()
                }
            }
            Source::System | Source::Set(_) => self.now(),
        }
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        match &self.0 {
            Source::Followed(followed) => followed.reading().now(),
            #[expect(
                clippy::disallowed_methods,
                reason = "this is where everything else has the time from"
            )]
            Source::System => SystemTime::now(),
            Source::Set(time) => *time.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Moves a stopped clock on, and all its clones. The system's stays as it is.
    pub fn advance(&self, by: Duration) {
        if let Source::Set(time) = &self.0 {
            *time.lock().unwrap_or_else(PoisonError::into_inner) += by;
        }
    }
}

impl Followed {
    fn reading(&self) -> Reading {
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_independent_clock_does_not_jump_with_the_host_s() {
        let host = Clock::stopped_at(SystemTime::UNIX_EPOCH + HOUR);
        let clock = Clock::independent_of(&host);
        host.advance(HOUR);
        let shown = clock.now();
        assert!(shown >= SystemTime::UNIX_EPOCH + HOUR);
        assert!(shown < host.now(), "it goes on by itself");
        assert_eq!(clock.time_of_day(), host.now(), "others go by the host's");

        let past = SystemTime::UNIX_EPOCH + 5 * HOUR;
        clock.catch_up(past);
        assert!(clock.now() >= past && clock.now() < past + HOUR);
        clock.catch_up(past - HOUR);
        assert!(clock.now() >= past, "it is not set back");
        assert_eq!(
            clock.time_of_day(),
            host.now(),
            "others still go by the host's"
        );

        let elsewhere = SystemTime::UNIX_EPOCH + 10 * HOUR;
        clock.follow(elsewhere, Instant::now());
        assert!(clock.now() >= elsewhere && clock.now() < elsewhere + HOUR);
        assert!(clock.time_of_day() >= elsewhere, "others go by that one");
    }

    #[test]
    fn a_stopped_clock_moves_only_when_it_is_advanced_and_takes_its_clones_along() {
        let clock = Clock::stopped_at(SystemTime::UNIX_EPOCH);
        let clone = clock.clone();
        assert_eq!(clone.now(), SystemTime::UNIX_EPOCH);
        clock.advance(Duration::from_secs(5));
        assert_eq!(clone.now(), SystemTime::UNIX_EPOCH + Duration::from_secs(5));
    }

    #[test]
    fn the_system_s_clock_goes_on() {
        let clock = Clock::system();
        let before = clock.now();
        clock.advance(Duration::from_secs(3600));
        let after = clock.now();
        assert!(after >= before && after < before + Duration::from_secs(3600));
    }
}

//! Clock: the time of day, from the system or set by a test.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
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

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        match &self.0 {
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

#[cfg(test)]
mod tests {
    use super::*;

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

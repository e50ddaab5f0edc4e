//! Reference clock: has a clock of this process follow one elsewhere, which all processes share.
//!
//! What processes agree on by times, such as leases, must not depend on whose host shows which time: a host whose clock
//! jumps by an hour would find all leases of the others over, or have nothing due for an hour.
//!
//! Where there is no clock elsewhere, what processes before have noted is past: one that was started while its host's clock
//! was behind would otherwise find nothing due until the clock had caught up.

use std::{
    future::Future,
    time::{Duration, Instant, SystemTime},
};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{Clock, OutageLog};

/// How often the clock elsewhere is read: two clocks drift apart by some microseconds meanwhile.
const INTERVAL: Duration = Duration::from_secs(5);

/// Longest that a reading may take to count: half of it is how wrong it may be.
const LONGEST_READING: Duration = Duration::from_millis(500);

/// How far the host's clock may be off before an operator should know.
const NOTEWORTHY: Duration = Duration::from_secs(5);

/// What there is to go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A clock elsewhere shows this.
    Shows(SystemTime),
    /// There is none but the host's, and this was noted by it, or by it before it was set.
    IsPast(SystemTime),
}

/// A clock and what it follows, which `read` returns; `None` where there is nothing yet but the host's clock.
#[derive(Debug)]
pub struct ReferenceClock<Read> {
    host: Clock,
    clock: Clock,
    read: Read,
    host_is_off: bool,
}

impl<Read, Answer, Error> ReferenceClock<Read>
where
    Read: Fn() -> Answer,
    Answer: Future<Output = Result<Option<Reference>, Error>>,
    Error: std::error::Error,
{
    /// Reads the clock elsewhere for the first time.
    ///
    /// # Errors
    /// Those of `read`.
    pub async fn start(host: Clock, read: Read) -> Result<Self, Error> {
        let mut started = Self {
            clock: Clock::independent_of(&host),
            host,
            read,
            host_is_off: false,
        };
        started.follow(Duration::MAX).await?;
        Ok(started)
    }

    /// The clock that follows.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Follows until `shutdown`. While nothing can be read, the clock goes on by itself.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut outage = OutageLog::new("reading the shared clock");
        while !shutdown.is_cancelled() {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(INTERVAL) => {}
            }
            match self.follow(LONGEST_READING).await {
                Ok(()) => outage.recovered(),
                Err(error) => outage.failed("there is no answer", &error),
            }
        }
    }

    /// Reads once, and follows a reading that took no longer than `longest`.
    async fn follow(&mut self, longest: Duration) -> Result<(), Error> {
        let asked = Instant::now();
        let read = (self.read)().await?;
        let took = asked.elapsed();
        match read {
            Some(Reference::Shows(time)) if took <= longest => {
                self.clock.follow(time, asked + took / 2);
                self.compare_with_host();
            }
            Some(Reference::IsPast(time)) => self.clock.catch_up(time),
            Some(Reference::Shows(_)) | None => {}
        }
        Ok(())
    }

    fn compare_with_host(&mut self) {
        let (here, there) = (self.host.now(), self.clock.now());
        let off = here
            .duration_since(there)
            .unwrap_or_else(|error| error.duration());
        let is_off = off > NOTEWORTHY;
        if is_off && !self.host_is_off {
            let seconds = off.as_secs();
            tracing::warn!(
                seconds,
                "this host's clock is off the one that all processes share, by which deliveries go; synchronise it"
            );
        }
        self.host_is_off = is_off;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicU64, Ordering},
    };

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn what_is_read_is_followed_and_what_the_host_shows_is_not() {
        let there = AtomicU64::new(100);
        let hours = |count: u64| SystemTime::UNIX_EPOCH + HOUR * u32::try_from(count).expect("few");
        let read = || async {
            Ok::<_, Infallible>(Some(Reference::Shows(hours(there.load(Ordering::Relaxed)))))
        };
        let host = Clock::stopped_at(hours(7));
        let reference = ReferenceClock::start(host.clone(), read).await;
        let mut reference = reference.expect("reads");
        let clock = reference.clock();
        let shows = |count: u64| clock.now() >= hours(count) && clock.now() < hours(count + 1);
        assert!(shows(100));
        host.advance(50 * HOUR);
        assert!(shows(100));
        assert!(reference.host_is_off);

        there.store(90, Ordering::Relaxed);
        reference.follow(Duration::MAX).await.expect("reads");
        assert!(shows(90), "a database that was replaced shows another time");
        there.store(80, Ordering::Relaxed);
        reference.follow(Duration::ZERO).await.expect("reads");
        assert!(shows(90), "a reading that took long counts for nothing");
    }

    #[tokio::test]
    async fn without_a_clock_elsewhere_the_host_s_is_gone_on_from_but_not_before_what_is_past() {
        let past = AtomicU64::new(0);
        let hours = |count: u64| SystemTime::UNIX_EPOCH + HOUR * u32::try_from(count).expect("few");
        let read = || async {
            let past = past.load(Ordering::Relaxed);
            Ok::<_, Infallible>((past > 0).then(|| Reference::IsPast(hours(past))))
        };
        let host = Clock::stopped_at(hours(1));
        let reference = ReferenceClock::start(host.clone(), read).await;
        let mut reference = reference.expect("answers");
        let clock = reference.clock();
        host.advance(HOUR);
        assert!(clock.now() < host.now());
        past.store(9, Ordering::Relaxed);
        reference.follow(Duration::ZERO).await.expect("answers");
        assert!(clock.now() >= hours(9) && clock.now() < hours(10));
        past.store(8, Ordering::Relaxed);
        reference.follow(Duration::ZERO).await.expect("answers");
        assert!(clock.now() >= hours(9), "time does not go back");
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        reference.run(shutdown).await;
    }
}

//! [`Syncs`]: the syncs of a log, of which one counts only if none before it failed.
//!
//! A kernel that cannot write a page says so once, and takes the page for written from then on: the next sync succeeds. The log
//! is read up to its first hole after a power cut, so whatever follows in it is lost as well.

#[cfg(feature = "private-cluster")]
use std::sync::atomic::{AtomicU32, Ordering};
use std::{
    collections::BTreeSet,
    io::{self, ErrorKind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

/// The syncs of one log.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    state: Mutex<State>,
    ended: Condvar,
    #[cfg(feature = "private-cluster")]
    to_fail: AtomicU32,
}

#[derive(Debug, Default)]
struct State {
    begun: u64,
    running: BTreeSet<u64>,
    /// Why the first one failed of those since the log was last folded.
    failed: Option<ErrorKind>,
}

impl Syncs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins one; those that are begun later wait for it.
    pub(super) fn begin(self: &Arc<Self>) -> Sync {
        let mut state = self.lock();
        let number = state.begun;
        state.begun = number.saturating_add(1);
        state.running.insert(number);
        Sync {
            syncs: Arc::clone(self),
            number,
            #[cfg(feature = "private-cluster")]
            injected: self.injected(),
        }
    }

    pub(super) fn failed(&self) -> bool {
        self.lock().failed.is_some()
    }

    pub(super) fn forget_failure(&self) {
        self.lock().failed = None;
    }

    #[cfg(feature = "private-cluster")]
    pub(super) fn fail_next(&self, count: u32) {
        self.to_fail.store(count, Ordering::SeqCst);
    }

    /// What a disk answers that a test has told to fail.
    #[cfg(feature = "private-cluster")]
    fn injected(&self) -> io::Result<()> {
        let left = |left: u32| left.checked_sub(1);
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        let taken = self.to_fail.fetch_update(set, fetch, left);
        taken.map_or(Ok(()), |_| {
            Err(io::Error::other("a test lets this sync fail"))
        })
    }
}

/// One sync, until it has ended.
#[derive(Debug)]
pub(super) struct Sync {
    syncs: Arc<Syncs>,
    number: u64,
    #[cfg(feature = "private-cluster")]
    injected: io::Result<()>,
}

impl Sync {
    #[cfg(feature = "private-cluster")]
    fn injected(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.injected, Ok(()))
    }

    #[cfg(not(feature = "private-cluster"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "as where tests inject failures"
    )]
    const fn injected(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Waits for the disk, and for the syncs before this one.
    pub(super) fn run(mut self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let synced = self.injected().and_then(|()| sync());
        let mut state = self.syncs.lock();
        if let Err(error) = &synced {
            state.failed.get_or_insert(error.kind());
        }
        state.running.remove(&self.number);
        self.syncs.ended.notify_all();
        let is_earlier = |state: &mut State| {
            state
                .running
                .first()
                .is_some_and(|first| *first < self.number)
        };
        let state = self.syncs.ended.wait_while(state, is_earlier);
        let failed = state.unwrap_or_else(PoisonError::into_inner).failed;
        synced?;
        failed.map_or(Ok(()), |kind| {
            Err(io::Error::new(
                kind,
                "the disk may lack earlier pages of the log",
            ))
        })
    }
}

impl Drop for Sync {
    /// One that never ran keeps no other waiting.
    fn drop(&mut self) {
        self.syncs.lock().running.remove(&self.number);
        self.syncs.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn a_sync_fails_with_one_that_began_before_it_and_ended_after_it() {
        let syncs = Arc::new(Syncs::default());
        let (first, second) = (syncs.begin(), syncs.begin());
        let (started, starts) = mpsc::channel();
        let waiting = thread::spawn(move || {
            second.run(|| {
                started.send(()).map_err(io::Error::other)?;
                Ok(())
            })
        });
        starts.recv().expect("the second runs");
        first
            .run(|| Err(ErrorKind::StorageFull.into()))
            .expect_err("fails");
        let second = waiting.join().expect("no panic").expect_err("fails too");
        assert_eq!(second.kind(), ErrorKind::StorageFull);
        let next = syncs.begin().run(|| Ok(()));
        assert!(next.is_err() && syncs.failed(), "until the log is folded");
        syncs.forget_failure();
        syncs.begin().run(|| Ok(())).expect("succeeds");
    }

    #[test]
    fn a_sync_that_never_ran_keeps_no_other_waiting() {
        let syncs = Arc::new(Syncs::default());
        let (first, second) = (syncs.begin(), syncs.begin());
        drop(first);
        second.run(|| Ok(())).expect("succeeds");
    }
}

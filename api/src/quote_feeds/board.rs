//! Board: what a feed shows, and the waking of all who look at it, in the order in which they came to wait.
//!
//! Tokio's `watch` wakes in an order of chance. Ten thousand readers do not fit into a processor's caches, and what each of them
//! needs next to the one before lies next to it, where the processor fetches it ahead.

use std::sync::{
    Arc,
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{
    Notify,
    futures::{Notified, OwnedNotified},
};

use super::shown::Shown;

/// The side of the feed. Clones are the same board.
#[derive(Clone)]
pub(super) struct Board(Arc<Parts>);

struct Parts {
    shown: Mutex<Shown>,
    /// Whether nothing will change any more.
    is_left: AtomicBool,
    changed: Arc<Notify>,
    onlookers: AtomicUsize,
}

/// One who looks at it.
pub(super) struct Onlooker(Arc<Parts>);

impl Board {
    pub(super) fn new(shown: Shown) -> Self {
        Self(Arc::new(Parts {
            shown: Mutex::new(shown),
            is_left: AtomicBool::new(false),
            changed: Arc::default(),
            onlookers: AtomicUsize::new(0),
        }))
    }

    pub(super) fn onlooker(&self) -> Onlooker {
        self.0.onlookers.fetch_add(1, Relaxed);
        Onlooker(Arc::clone(&self.0))
    }

    pub(super) fn has_onlookers(&self) -> bool {
        self.0.onlookers.load(Relaxed) > 0
    }

    /// Changes what is shown.
    pub(super) fn change(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut self.0.shown.lock());
        self.0.changed.notify_waiters();
    }

    /// Leaves it as it is for good.
    pub(super) fn leave(&self) {
        self.0.is_left.store(true, Release);
        self.0.changed.notify_waiters();
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Onlooker {
    /// Waits for the next change after this call, whenever it is awaited, or until the board is left.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }

    /// As [`Self::changed`], for who keeps what is waited for.
    pub(super) fn changed_owned(&self) -> OwnedNotified {
        Arc::clone(&self.0.changed).notified_owned()
    }

    /// What it looks at.
    pub(super) fn board(&self) -> Board {
        Board(Arc::clone(&self.0))
    }

    /// Whether what is shown will change no more. What it changed to before is shown.
    pub(super) fn is_left(&self) -> bool {
        self.0.is_left.load(Acquire)
    }

    /// What is shown. No other is shown anything meanwhile.
    pub(super) fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.shown.lock()
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        self.0.onlookers.fetch_sub(1, Relaxed);
    }
}

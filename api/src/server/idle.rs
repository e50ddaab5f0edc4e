//! Idle connections: those on which the server waits for a request, or for the rest of one.
//!
//! A crowd that drips its requests, or sends none, could hold every place until its deadlines pass, and who comes next would
//! find none. So some places are kept free: when they are taken, the connections that have been idle for longest give way.
//! Who means to ask does so at once, and gives way to nobody.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::sleep};

/// One of so many places is kept free for who comes next, and as many connections give way at a time: so many that it is
/// seldom looked for them, and so few that hardly one of them had a request on its way.
const KEPT_FREE_OF: usize = 32;

/// The open connections, and since when each is idle. Clones know the same.
#[derive(Clone, Default)]
pub struct IdleConnections(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// By the turn in which they were opened.
    open: Mutex<HashMap<u64, Arc<Watched>>>,
    /// The newest turn: each time that a connection becomes idle is one, so that they have an order without a clock.
    turn: AtomicU64,
    /// How many give way, and are open still.
    leaving: AtomicUsize,
}

struct Watched {
    /// Requests that have come and are not answered to the end: over HTTP/2 several at a time.
    under_way: AtomicUsize,
    /// Since which turn it is idle, when nothing is under way.
    idle_since: AtomicU64,
    gives_way: AtomicBool,
    called: Notify,
}

/// One open connection, which is idle at first.
pub struct Connection {
    of: Arc<Shared>,
    opened: u64,
    watched: Arc<Watched>,
}

/// Notes when a connection is asked and has answered.
#[derive(Clone)]
pub struct Note {
    of: Arc<Shared>,
    watched: Arc<Watched>,
}

/// A request that has come and is not answered to the end: its connection is not idle.
pub struct UnderWay(Note);

impl IdleConnections {
    /// A connection is opened.
    pub fn open(&self) -> Connection {
        let of = Arc::clone(&self.0);
        let opened = of.next_turn();
        let watched = Arc::new(Watched {
            under_way: AtomicUsize::new(0),
            idle_since: AtomicU64::new(opened),
            gives_way: AtomicBool::new(false),
            called: Notify::new(),
        });
        of.open.lock().insert(opened, Arc::clone(&watched));
        Connection {
            of,
            opened,
            watched,
        }
    }

    /// Has connections give way where fewer places are `free` than are kept, of so many in all; how many do.
    pub fn make_room(&self, free: usize, of_all: usize) -> usize {
        let kept = of_all / KEPT_FREE_OF;
        if free.saturating_add(self.0.leaving.load(Relaxed)) >= kept {
            return 0;
        }
        let open = self.0.open.lock();
        let mut idle: Vec<_> = open
            .values()
            .filter(|watched| !watched.gives_way.load(Relaxed))
            .filter_map(|watched| Some((watched.idle_since()?, watched)))
            .collect();
        if idle.len() > kept {
            idle.select_nth_unstable_by_key(kept, |(since, _)| *since);
            idle.truncate(kept);
        }
        let calls = idle.into_iter().map(|(since, watched)| watched.call(since));
        let called = calls.filter(|is_called| *is_called).count();
        self.0.leaving.fetch_add(called, Relaxed);
        called
    }

    /// Whether some give way that are open still.
    pub fn are_leaving(&self) -> bool {
        self.0.leaving.load(Relaxed) > 0
    }
}

impl Shared {
    fn next_turn(&self) -> u64 {
        self.turn.fetch_add(1, Relaxed)
    }
}

impl Watched {
    /// Since which turn it is idle; `None` when it is not.
    fn idle_since(&self) -> Option<u64> {
        (self.under_way.load(Acquire) == 0).then(|| self.idle_since.load(Relaxed))
    }

    /// Has it give way, unless it was asked meanwhile.
    fn call(&self, since: u64) -> bool {
        let is_idle = self.idle_since() == Some(since);
        if is_idle {
            self.gives_way.store(true, Relaxed);
            self.called.notify_one();
        }
        is_idle
    }
}

impl Connection {
    /// Who notes what happens on it.
    pub fn note(&self) -> Note {
        Note {
            of: Arc::clone(&self.of),
            watched: Arc::clone(&self.watched),
        }
    }

    /// Waits until it gives way to another.
    pub async fn gives_way(&self) {
        self.watched.called.notified().await;
    }

    /// Waits until it has been idle for this long, or up to twice as long.
    pub async fn is_idle_for(&self, time: Duration) {
        loop {
            let before = self.watched.idle_since();
            sleep(time).await;
            if before.is_some() && before == self.watched.idle_since() {
                return;
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.of.open.lock().remove(&self.opened);
        if self.watched.gives_way.load(Relaxed) {
            self.of.leaving.fetch_sub(1, Relaxed);
        }
    }
}

impl Note {
    /// A request has come, which is under way until what is given out is dropped.
    pub fn asked(&self) -> UnderWay {
        self.watched.under_way.fetch_add(1, Relaxed);
        UnderWay(self.clone())
    }

    /// A request has come and was answered at once.
    pub fn answered(&self) {
        self.watched.idle_since.store(self.of.next_turn(), Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // First, so that it is not taken to be idle since the time before.
        self.0.answered();
        self.0.watched.under_way.fetch_sub(1, Release);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::timeout;

    use super::*;

    const PLACES: usize = 4 * KEPT_FREE_OF;

    /// Whether it gives way by now.
    fn is_called(connection: &Connection) -> bool {
        connection.gives_way().now_or_never().is_some()
    }

    #[test]
    fn those_idle_for_longest_give_way_and_none_that_was_asked() {
        let idle = IdleConnections::default();
        let connections: Vec<_> = (0..10).map(|_| idle.open()).collect();
        let _under_way = connections[0].note().asked();
        connections[1].note().answered();
        // Four are kept free, and there are.
        assert_eq!(idle.make_room(4, PLACES), 0);
        assert_eq!(idle.make_room(3, PLACES), 4);
        let called: Vec<_> = connections.iter().map(is_called).collect();
        let expected: Vec<_> = (0..10).map(|number| (2..6).contains(&number)).collect();
        assert_eq!(called, expected);
    }

    #[test]
    fn no_more_give_way_while_those_before_are_still_leaving() {
        let idle = IdleConnections::default();
        let mut connections: Vec<_> = (0..10).map(|_| idle.open()).collect();
        assert_eq!(idle.make_room(0, PLACES), 4);
        assert_eq!(idle.make_room(0, PLACES), 0);
        connections.drain(..4);
        assert_eq!(idle.make_room(0, PLACES), 4);
        // The two that are left are all there are.
        connections.drain(..4);
        assert_eq!(idle.make_room(0, PLACES), 2);
    }

    #[test]
    fn when_all_are_busy_none_gives_way() {
        let idle = IdleConnections::default();
        let connections: Vec<_> = (0..10).map(|_| idle.open()).collect();
        let under_way = connections
            .iter()
            .map(|connection| connection.note().asked());
        let _under_way: Vec<_> = under_way.collect();
        assert_eq!(idle.make_room(0, PLACES), 0);
    }

    #[test]
    fn one_is_idle_when_the_last_of_its_requests_is_answered() {
        let idle = IdleConnections::default();
        let connection = idle.open();
        let first = connection.note().asked();
        let second = connection.note().asked();
        drop(first);
        assert_eq!(idle.make_room(0, PLACES), 0);
        drop(second);
        assert_eq!(idle.make_room(0, PLACES), 1);
        assert!(is_called(&connection));
    }

    #[tokio::test]
    async fn one_of_which_a_request_is_under_way_is_idle_for_no_time() {
        const TIME: Duration = Duration::from_millis(20);
        let idle = IdleConnections::default();
        let connection = idle.open();
        let under_way = connection.note().asked();
        let waited = timeout(5 * TIME, connection.is_idle_for(TIME)).await;
        assert!(waited.is_err(), "idle while it is asked");
        drop(under_way);
        connection.is_idle_for(TIME).await;
    }
}

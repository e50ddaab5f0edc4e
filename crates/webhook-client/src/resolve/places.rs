//! [`Places`]: the lookups that may be in progress at once, so that name servers that keep silent hold up nobody else's names.
//!
//! Every lookup begins in one of the quick places, of which each is free again soon: the lookup is over by then, or goes on
//! in one of the slow places, or ends where these are all taken. The quick places are given to the domains in turn: where a
//! name server is silent for many names of one domain, these wait for each other, and a name of another one for the next place
//! but one.

use std::{collections::HashMap, io, net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{AcquireError, Mutex as Turn, Semaphore, SemaphorePermit},
    time::timeout,
};

use super::Resolver;

/// Lookups at once in quick places, each of which has a few sockets: a part of the open files that a service has room for.
pub(super) const QUICK: usize = 128;

/// Lookups at once in slow places, each until the resolver's deadline at the latest: dozens of names a second where all are slow,
/// as while a name server of the system is down, with sockets that are a part of the open files still.
pub(super) const SLOW: usize = 2 * QUICK;

/// Where lookups have their turn.
pub(super) struct Places {
    /// How long a lookup may have a quick place.
    allowed: Duration,
    quick: Semaphore,
    slow: Semaphore,
    /// By domain of which a name waits for a quick place: of its names one at a time waits in line with the other domains.
    turns: Mutex<HashMap<String, Arc<Turn<()>>>>,
}

impl Places {
    /// Places of which a lookup may have a quick one for as long as `allowed`.
    pub(super) fn new(allowed: Duration) -> Self {
        Self {
            allowed,
            quick: Semaphore::new(QUICK),
            slow: Semaphore::new(SLOW),
            turns: Mutex::default(),
        }
    }

    /// What `resolver` answers for a name when there is a place for it.
    ///
    /// # Errors
    /// The resolver's, and [`io::ErrorKind::TimedOut`] when the name is slow and there is no place for another slow one.
    pub(super) async fn lookup(
        &self,
        resolver: &dyn Resolver,
        name: &str,
    ) -> io::Result<Vec<IpAddr>> {
        let quick = self.quick_place(name).await;
        let mut lookup = resolver.lookup(name);
        if let Ok(answer) = timeout(self.allowed, &mut lookup).await {
            return answer;
        }
        let Ok(slow) = self.slow.try_acquire() else {
            let seconds = self.allowed.as_secs_f64();
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "the name server did not answer within {seconds} s, and too many others do not either"
                ),
            ));
        };
        drop(quick);
        let answer = lookup.await;
        drop(slow);
        answer
    }

    /// A quick place, when it is the turn of the name's domain and, within that, of the name.
    async fn quick_place(&self, name: &str) -> Result<SemaphorePermit<'_>, AcquireError> {
        let domain = domain(name);
        let turn = {
            let mut turns = self.turns.lock();
            Arc::clone(turns.entry(domain.to_owned()).or_default())
        };
        let place = {
            let _first_of_domain = turn.lock().await;
            self.quick.acquire().await
        };
        let mut turns = self.turns.lock();
        drop(turn);
        // It is cloned under the lock alone: no name of the domain waits.
        if turns
            .get(domain)
            .is_some_and(|turn| Arc::strong_count(turn) == 1)
        {
            turns.remove(domain);
        }
        place
    }
}

/// The last two labels of a name: mostly what one owner has registered. Where several share them, they wait in one line.
fn domain(name: &str) -> &str {
    let name = name.trim_end_matches('.');
    let second_last_dot = name.rmatch_indices('.').nth(1);
    second_last_dot.map_or(name, |(dot, _)| &name[dot + 1..])
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn the_domain_of_a_name_is_its_last_two_labels() {
        for (name, expected) in [
            ("a.b.example.com", "example.com"),
            ("b.example.com.", "example.com"),
            ("example.com", "example.com"),
            ("localhost", "localhost"),
            ("", ""),
        ] {
            assert_eq!(domain(name), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn a_domain_is_forgotten_when_none_of_its_names_waits_for_a_place() {
        let places = Places::new(Duration::ZERO);
        let names = (0..=QUICK).map(|number| format!("{number}.one.example"));
        let names: Vec<_> = names.collect();
        let mut taken = Vec::new();
        for name in &names[..QUICK] {
            taken.push(places.quick_place(name).await);
            assert!(places.turns.lock().is_empty(), "it had its place at once");
        }
        let mut waiting = pin!(places.quick_place(&names[QUICK]));
        let still_waits = timeout(Duration::ZERO, &mut waiting).await;
        assert!(still_waits.is_err(), "all are taken");
        assert!(places.turns.lock().contains_key("one.example"));
        taken.pop();
        drop(waiting.await);
        assert!(places.turns.lock().is_empty());
    }
}

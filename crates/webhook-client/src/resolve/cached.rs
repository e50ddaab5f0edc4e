//! [`CachedResolver`]: keeps resolved addresses for a while, and resolves a name once for all who wait for it.
//!
//! A name whose server does not answer must cost its own webhook its attempts, and nobody else's: so there is one lookup
//! at a time for a name, a limited number for all names, and who waits for one gives up before it does.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};

use super::{Lookup, Resolver};

/// How long answers are good for.
#[derive(Clone, Copy, Debug)]
struct Ages {
    /// An answer is given again without asking: a receiver that moves is followed within this.
    fresh: Duration,
    /// A failure is.
    failed: Duration,
    /// An answer is given when the name cannot be resolved now: a name server that is down for less stops nothing.
    stale: Duration,
    /// How long a lookup is waited for.
    patience: Duration,
}

const AGES: Ages = Ages {
    fresh: Duration::from_secs(30),
    failed: Duration::from_secs(5),
    stale: Duration::from_secs(60 * 60),
    // A resolver asks the second name server after five seconds.
    patience: Duration::from_secs(6),
};

/// Lookups at once, each of which has a few sockets: a part of the open files that a service has room for.
const LOOKUPS: usize = 128;

/// Names of which answers are kept: a few hundred bytes each.
const NAMES: usize = 10_000;

/// The addresses of a name, or why there are none.
type Answer = Result<Vec<IpAddr>, (io::ErrorKind, String)>;

/// A resolver that asks another one, and keeps its answers.
pub(crate) struct CachedResolver(Arc<Cache>);

struct Cache {
    resolver: Arc<dyn Resolver>,
    ages: Ages,
    lookups: Semaphore,
    names: Mutex<HashMap<String, Known>>,
}

/// What is known of a name.
#[derive(Default)]
struct Known {
    /// The last answer, and when it came.
    last: Option<(Answer, Instant)>,
    /// The last addresses, and when they came.
    addresses: Option<(Vec<IpAddr>, Instant)>,
    /// The lookup that is in progress.
    lookup: Option<watch::Receiver<Option<Answer>>>,
}

impl CachedResolver {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self::with_ages(resolver, AGES)
    }

    fn with_ages(resolver: Arc<dyn Resolver>, ages: Ages) -> Self {
        Self(Arc::new(Cache {
            resolver,
            ages,
            lookups: Semaphore::new(LOOKUPS),
            names: Mutex::default(),
        }))
    }
}

impl Resolver for CachedResolver {
    fn lookup(&self, name: &str) -> Lookup {
        let (cache, name) = (Arc::clone(&self.0), name.to_owned());
        Box::pin(async move {
            let answer = cache.answer(name).await;
            answer.map_err(|(kind, fault)| io::Error::new(kind, fault))
        })
    }
}

impl Cache {
    async fn answer(self: Arc<Self>, name: String) -> Answer {
        let mut lookup = {
            let mut names = self.names.lock();
            if names.len() >= NAMES {
                let stale = self.ages.stale;
                names.retain(|_, known| known.is_needed(stale));
                if names.len() >= NAMES {
                    names.retain(|_, known| known.lookup.is_some());
                }
            }
            let known = names.entry(name.clone()).or_default();
            if let Some(answer) = known.still_good(self.ages) {
                return answer;
            }
            known
                .lookup
                .get_or_insert_with(|| Arc::clone(&self).begin(name.clone()))
                .clone()
        };
        let answered = timeout(self.ages.patience, lookup.wait_for(Option::is_some)).await;
        let answer = match answered {
            Ok(Ok(answer)) => answer.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        match answer {
            Some(Ok(addresses)) => Ok(addresses),
            failed => self.stale(&name).ok_or_else(|| {
                let seconds = self.ages.patience.as_secs_f64();
                let fault = format!("the name was not resolved within {seconds} s");
                match failed {
                    Some(Err(fault)) => fault,
                    Some(Ok(_)) | None => (io::ErrorKind::TimedOut, fault),
                }
            }),
        }
    }

    /// Begins a lookup, which goes on when nobody waits for it any more.
    fn begin(self: Arc<Self>, name: String) -> watch::Receiver<Option<Answer>> {
        let (answered, lookup) = watch::channel(None);
        tokio::spawn(async move {
            let permit = self.lookups.acquire().await;
            let answer = self.resolver.lookup(&name).await;
            drop(permit);
            let answer = answer.map_err(|error| (error.kind(), error.to_string()));
            if let Some(known) = self.names.lock().get_mut(&name) {
                known.keep(answer.clone());
            }
            answered.send_replace(Some(answer));
        });
        lookup
    }

    /// Addresses that the name had not long ago.
    fn stale(&self, name: &str) -> Option<Vec<IpAddr>> {
        let names = self.names.lock();
        let (addresses, at) = names.get(name)?.addresses.as_ref()?;
        (at.elapsed() < self.ages.stale).then(|| addresses.clone())
    }
}

impl Known {
    fn still_good(&self, ages: Ages) -> Option<Answer> {
        let (answer, at) = self.last.as_ref()?;
        let age = at.elapsed();
        match answer {
            Ok(_) if age < ages.fresh => Some(answer.clone()),
            // Old addresses are better than a failure.
            Err(_) if age < ages.failed => match &self.addresses {
                Some((addresses, at)) if at.elapsed() < ages.stale => Some(Ok(addresses.clone())),
                _ => Some(answer.clone()),
            },
            _ => None,
        }
    }

    fn keep(&mut self, answer: Answer) {
        let now = Instant::now();
        if let Ok(addresses) = &answer {
            self.addresses = Some((addresses.clone(), now));
        }
        self.last = Some((answer, now));
        self.lookup = None;
    }

    fn is_needed(&self, stale: Duration) -> bool {
        let last = self.last.as_ref();
        self.lookup.is_some() || last.is_some_and(|(_, at)| at.elapsed() < stale / 10)
    }
}

#[cfg(test)]
mod tests;

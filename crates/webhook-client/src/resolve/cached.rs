//! [`CachedResolver`]: keeps resolved addresses for a while, and resolves a name once for all who wait for it.
//!
//! A name whose server does not answer must cost its own webhook its attempts, and nobody else's: so there is one lookup
//! at a time for a name, one that is slow makes room for others ([`Places`]), and who waits for one gives up before it does.
//! Where the name had addresses not long ago, these are given soon, and the lookup goes on for those who ask later. They are
//! judged by who asks, each time, as new ones are.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};

use super::{Lookup, Resolver, places::Places};

/// How long answers are good for, and lookups are waited for.
#[derive(Clone, Copy, Debug)]
struct Ages {
    /// An answer is given again without asking: a receiver that moves is followed within this.
    fresh: Duration,
    /// A failure is.
    failed: Duration,
    /// Addresses are given when the name cannot be resolved now: a name server that is down for less stops nothing.
    stale: Duration,
    /// How long a lookup is waited for where such addresses are known.
    soon: Duration,
    /// How long a lookup is waited for where none are.
    patience: Duration,
    /// How long a lookup may have a quick place.
    quick: Duration,
}

const AGES: Ages = Ages {
    fresh: Duration::from_secs(30),
    failed: Duration::from_secs(5),
    stale: Duration::from_secs(60 * 60),
    // Most names are resolved within it, so a receiver that moves is followed still; the shortest deadline is four times that.
    soon: Duration::from_millis(250),
    // A resolver asks the second name server after five seconds.
    patience: Duration::from_secs(6),
    // Name servers on another continent, asked one after the other from the root on, mostly answer within it.
    quick: Duration::from_secs(1),
};

/// Names of which answers are kept: a few hundred bytes each.
const NAMES: usize = 10_000;

/// The addresses of a name, or why there are none.
type Answer = Result<Vec<IpAddr>, (io::ErrorKind, String)>;

/// A resolver that asks another one, and keeps its answers.
pub(crate) struct CachedResolver(Arc<Cache>);

struct Cache {
    resolver: Arc<dyn Resolver>,
    ages: Ages,
    places: Places,
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
            places: Places::new(ages.quick),
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
        let (old, mut lookup) = {
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
            let old = known.old_addresses(self.ages.stale);
            let begin = || Arc::clone(&self).begin(name);
            (old, known.lookup.get_or_insert_with(begin).clone())
        };
        let patience = match old {
            Some(_) => self.ages.soon,
            None => self.ages.patience,
        };
        let answered = timeout(patience, lookup.wait_for(Option::is_some)).await;
        let answer = match answered {
            Ok(Ok(answer)) => answer.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        match (answer, old) {
            (Some(Ok(addresses)), _) | (_, Some(addresses)) => Ok(addresses),
            (Some(Err(fault)), None) => Err(fault),
            (None, None) => {
                let seconds = patience.as_secs_f64();
                let fault = format!("the name was not resolved within {seconds} s");
                Err((io::ErrorKind::TimedOut, fault))
            }
        }
    }

    /// Begins a lookup, which goes on when nobody waits for it any more.
    fn begin(self: Arc<Self>, name: String) -> watch::Receiver<Option<Answer>> {
        let (answered, lookup) = watch::channel(None);
        tokio::spawn(async move {
            let answer = self.places.lookup(&*self.resolver, &name).await;
            let answer = answer.map_err(|error| (error.kind(), error.to_string()));
            if let Some(known) = self.names.lock().get_mut(&name) {
                known.keep(answer.clone());
            }
            answered.send_replace(Some(answer));
        });
        lookup
    }
}

impl Known {
    fn still_good(&self, ages: Ages) -> Option<Answer> {
        let (answer, at) = self.last.as_ref()?;
        let age = at.elapsed();
        match answer {
            Ok(_) if age < ages.fresh => Some(answer.clone()),
            // Old addresses are better than a failure.
            Err(_) if age < ages.failed => match self.old_addresses(ages.stale) {
                Some(addresses) => Some(Ok(addresses)),
                None => Some(answer.clone()),
            },
            _ => None,
        }
    }

    /// Addresses that the name had not long ago.
    fn old_addresses(&self, stale: Duration) -> Option<Vec<IpAddr>> {
        let (addresses, at) = self.addresses.as_ref()?;
        (at.elapsed() < stale).then(|| addresses.clone())
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

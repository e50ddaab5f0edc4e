//! Sessions: sign-ins of the console, each for an API key and for a limited time, kept in this process (pure).

use std::{
    collections::HashMap,
    fmt,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sluice_store::ApiKeyHash;

/// How long a session lasts: a working day, so that nobody signs in twice in one.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

/// Most sessions at a time. Beyond them the oldest ends, so that signing in again and again fills no memory.
const MAX_SESSIONS: usize = 1_000;

/// Random bytes of a session: its name in the cookie, and the token against forged requests.
pub type SessionBytes = [[u8; 32]; 2];

/// An open session.
#[derive(Clone)]
pub struct Session {
    /// Hash of the key that was signed in with. It is looked up at each request, so that a revoked one ends its sessions.
    pub key: ApiKeyHash,
    /// What every request that changes something must bring in a header, which no other site can read.
    pub csrf_token: String,
    ends: Instant,
}

/// The open sessions by their names.
#[derive(Default)]
pub struct Sessions(Mutex<HashMap<String, Session>>);

impl Sessions {
    /// Opens a session for a key, and answers its name.
    pub fn open(&self, key: ApiKeyHash, [name, token]: SessionBytes, now: Instant) -> String {
        let name = hex::encode(name);
        let mut open = self.0.lock();
        open.retain(|_, session| session.ends > now);
        if open.len() >= MAX_SESSIONS {
            let oldest = open.iter().min_by_key(|(_, session)| session.ends);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                open.remove(&oldest);
            }
        }
        let session = Session {
            key,
            csrf_token: hex::encode(token),
            ends: now + LIFETIME,
        };
        open.insert(name.clone(), session);
        name
    }

    /// The session of this name, unless it has ended.
    #[must_use]
    pub fn find(&self, name: &str, now: Instant) -> Option<Session> {
        let session = self.0.lock().get(name).cloned();
        session.filter(|session| session.ends > now)
    }

    /// Ends a session.
    pub fn close(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Their names open the console.
        write!(f, "Sessions({})", self.0.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_itself_and_when_it_is_closed() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let name = sessions.open(ApiKeyHash::of("key"), [[1; 32], [7; 32]], now);
        let found = sessions.find(&name, now).expect("it is open");
        assert_eq!(found.csrf_token, "07".repeat(32));
        assert!(sessions.find(&name, now + LIFETIME).is_none());
        assert!(sessions.find("another", now).is_none());
        sessions.close(&name);
        assert!(sessions.find(&name, now).is_none());
        assert!(!format!("{sessions:?}").contains(&name));
    }

    #[test]
    fn beyond_the_most_the_oldest_ends() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let named = |number: usize| {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&number.to_le_bytes());
            [name, [7; 32]]
        };
        let first = sessions.open(ApiKeyHash::of("key"), named(0), now);
        for number in 1..=MAX_SESSIONS {
            let later = now + Duration::from_secs(1);
            sessions.open(ApiKeyHash::of("key"), named(number), later);
        }
        assert!(sessions.find(&first, now).is_none());
        assert_eq!(sessions.0.lock().len(), MAX_SESSIONS);
    }
}

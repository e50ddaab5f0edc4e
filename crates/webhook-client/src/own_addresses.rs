//! [`OwnAddresses`]: the addresses of this machine's interfaces, read again when they may have changed.

use std::{
    io,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::address::Own;

/// For how long the addresses that were read are taken for the machine's: one that it is given later is refused from then on. To read
/// them takes some tens of microseconds.
const FRESH: Duration = Duration::from_secs(10);

/// The addresses of this machine, as it has them now.
#[derive(Debug)]
pub(crate) struct OwnAddresses {
    read: fn() -> io::Result<Own>,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    own: Own,
    tried: Instant,
}

impl OwnAddresses {
    /// Those that `read` finds `now`, and finds later.
    ///
    /// # Errors
    /// When it fails now.
    pub(crate) fn read_by(read: fn() -> io::Result<Own>, now: Instant) -> io::Result<Self> {
        let kept = Mutex::new(Kept {
            own: read()?,
            tried: now,
        });
        Ok(Self { read, kept })
    }

    /// The addresses at `now`. Where they cannot be read again those that were read last are.
    pub(crate) fn at(&self, now: Instant) -> Own {
        let mut kept = self.kept.lock();
        if now.saturating_duration_since(kept.tried) >= FRESH {
            kept.tried = now;
            if let Ok(own) = (self.read)() {
                kept.own = own;
            }
        }
        kept.own.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::IpAddr,
        sync::atomic::{AtomicU8, Ordering},
    };

    use super::*;

    /// How often the addresses were read; the second time the system does not answer.
    static READ: AtomicU8 = AtomicU8::new(0);

    fn address(last: u8) -> IpAddr {
        [8, 8, 8, last].into()
    }

    fn read() -> io::Result<Own> {
        match READ.fetch_add(1, Ordering::SeqCst) {
            1 => Err(io::ErrorKind::Other.into()),
            times => Ok([address(times)].into_iter().collect()),
        }
    }

    #[test]
    fn an_address_that_the_machine_is_given_later_is_its_own_from_then_on() {
        let begun = Instant::now();
        let own = OwnAddresses::read_by(read, begun).expect("reads");
        let has = |last, after| own.at(begun + after).refusal(address(last)).is_some();
        assert!(has(0, FRESH / 2) && !has(2, FRESH / 2));
        assert_eq!(READ.load(Ordering::SeqCst), 1, "it is fresh");
        assert!(has(0, FRESH), "they cannot be read, and are what they were");
        assert!(
            has(0, FRESH * 2 - FRESH / 2),
            "nor is that tried at once again"
        );
        assert_eq!(READ.load(Ordering::SeqCst), 2);
        assert!(has(2, FRESH * 2) && !has(0, FRESH * 2));
    }
}

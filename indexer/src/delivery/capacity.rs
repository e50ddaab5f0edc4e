//! From whoever stores messages straight to the task that delivers them: what is stored here and now is stored under a
//! lease, and nobody needs to look for it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use sluice_store::{Claim, ClaimLimits, ClaimedDelivery, Lease, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Messages that are claimed at once: each is a few kilobytes, and a socket when its turn has come.
pub const MAX_CLAIMED: usize = 8192;

/// Attempts under way at once to one webhook. Receivers in one data centre with Sluice answer in a
/// millisecond, those on another continent in two hundred: eighty messages a second for them.
pub const MAX_PER_WEBHOOK: u32 = 16;

/// Messages of one webhook that are claimed at once: what a receiver that hangs can take from the others.
/// Eight rounds of attempts, so that a fast receiver need not wait for the database after each, and claims and
/// records are large.
pub const MAX_CLAIMED_PER_WEBHOOK: u32 = 8 * MAX_PER_WEBHOOK;

/// How long a claimed message may wait for its turn before it goes back to the queue. The lease must
/// outlive this and the attempt.
pub const TURN_PATIENCE: Duration = Duration::from_secs(5);

/// How much longer than the wait for its turn and the deadline of its attempt a lease lasts: time to record
/// the result on a busy machine.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// A claimed message and its place, which is free again when its result is recorded.
pub type Claimed = (ClaimedDelivery, OwnedSemaphorePermit);

/// The places of a dispatcher. Clones share them.
#[derive(Clone, Debug)]
pub struct Room {
    places: Arc<Semaphore>,
    attempt: Duration,
    handed: mpsc::UnboundedSender<Vec<Claimed>>,
}

/// What is handed to a dispatcher. There are never more than it has places for.
#[derive(Debug)]
pub struct Intake {
    pub(super) room: Room,
    pub(super) handed: mpsc::UnboundedReceiver<Vec<Claimed>>,
}

/// Places that were taken beforehand.
#[derive(Debug)]
pub struct Places {
    claim: Claim,
    places: OwnedSemaphorePermit,
}

impl Intake {
    /// The places of a dispatcher whose attempts take no longer than told.
    #[must_use]
    pub fn new(attempt: Duration) -> Self {
        let (sender, handed) = mpsc::unbounded_channel();
        let room = Room {
            places: Arc::new(Semaphore::new(MAX_CLAIMED)),
            attempt,
            handed: sender,
        };
        Self { room, handed }
    }

    /// Where messages can be handed in.
    #[must_use]
    pub fn room(&self) -> Room {
        self.room.clone()
    }
}

impl Room {
    /// Takes as many places as there are, at most so many; `None` when there is none.
    #[must_use]
    pub fn take(&self, most: usize) -> Option<Places> {
        let count = u32::try_from(most.min(self.places.available_permits())).ok()?;
        if count == 0 {
            return None;
        }
        let places = Arc::clone(&self.places).try_acquire_many_owned(count);
        let now = Timestamp::from(SystemTime::now());
        let claim = Claim {
            now,
            until: now.after(TURN_PATIENCE + self.attempt + LEASE_MARGIN),
            lease: Lease::from_random(rand::random()),
            limits: ClaimLimits {
                total: count,
                per_webhook: MAX_CLAIMED_PER_WEBHOOK,
            },
        };
        let places = places.ok()?;
        Some(Places { claim, places })
    }

    /// Hands in what was claimed for these places. Where nobody delivers any more, the leases run out.
    pub fn hand_in(&self, places: Places, claimed: Vec<ClaimedDelivery>) {
        let claimed = places.fill(claimed);
        if !claimed.is_empty() {
            let _ = self.handed.send(claimed);
        }
    }
}

impl Places {
    /// What is to be claimed for them.
    #[must_use]
    pub const fn claim(&self) -> Claim {
        self.claim
    }

    /// Gives each message a place; the others are free again.
    #[must_use]
    pub fn fill(mut self, claimed: Vec<ClaimedDelivery>) -> Vec<Claimed> {
        claimed
            .into_iter()
            .filter_map(|delivery| Some((delivery, self.places.split(1)?)))
            .collect()
    }
}

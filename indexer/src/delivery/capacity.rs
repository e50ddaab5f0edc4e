//! Dispatch capacity: reservations under which messages are inserted already leased.
//!
//! What this process stores it also attempts: the outbox reserves capacity, has the deliveries leased as they are
//! inserted, and submits them to the dispatcher, which need not look for them.

use std::{sync::Arc, time::Duration};

use sluice_store::{LeaseLimits, LeaseRequest, LeaseToken, LeasedDelivery, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::limits::{LEASE_QUOTA, MAX_LEASED};

/// How long a leased delivery may wait for a permit before its lease is released. The lease must outlive this and the
/// attempt.
pub const PERMIT_PATIENCE: Duration = Duration::from_secs(5);

/// How much longer than the wait for a permit and the deadline of its attempt a lease lasts: time to record the result
/// on a busy machine.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// The number of deliveries that this process may lease. Clones share it.
#[derive(Clone, Debug)]
pub struct DispatchCapacity {
    free: Arc<Semaphore>,
    attempt: Duration,
    submissions: mpsc::UnboundedSender<Vec<ReservedDelivery>>,
}

/// The deliveries that are submitted to a dispatcher, never more than its capacity.
#[derive(Debug)]
pub struct Submissions {
    pub(super) capacity: DispatchCapacity,
    pub(super) submitted: mpsc::UnboundedReceiver<Vec<ReservedDelivery>>,
}

/// Capacity that was reserved before leasing. What is not used is free again when it is dropped.
#[derive(Debug)]
pub struct Reservation {
    request: LeaseRequest,
    reserved: OwnedSemaphorePermit,
    submissions: mpsc::UnboundedSender<Vec<ReservedDelivery>>,
}

/// A leased delivery and its part of the capacity, which is free again when its result is recorded.
#[derive(Debug)]
pub(super) struct ReservedDelivery {
    pub(super) delivery: LeasedDelivery,
    pub(super) reserved: OwnedSemaphorePermit,
}

impl Submissions {
    /// Submissions to a dispatcher whose attempts take at most `attempt`.
    #[must_use]
    pub fn new(attempt: Duration) -> Self {
        let (sender, submitted) = mpsc::unbounded_channel();
        let capacity = DispatchCapacity {
            free: Arc::new(Semaphore::new(MAX_LEASED)),
            attempt,
            submissions: sender,
        };
        Self {
            capacity,
            submitted,
        }
    }

    /// The capacity of the dispatcher.
    #[must_use]
    pub fn capacity(&self) -> DispatchCapacity {
        self.capacity.clone()
    }
}

impl DispatchCapacity {
    /// Reserves as much as is free, at most `most` deliveries, to be leased at `now`; `None` when nothing is free.
    #[must_use]
    pub fn reserve(&self, most: usize, now: Timestamp) -> Option<Reservation> {
        let count = u32::try_from(most.min(self.free.available_permits())).ok()?;
        if count == 0 {
            return None;
        }
        let reserved = Arc::clone(&self.free).try_acquire_many_owned(count).ok()?;
        let request = LeaseRequest {
            now,
            until: now.after(PERMIT_PATIENCE + self.attempt + LEASE_MARGIN),
            token: LeaseToken::from_random(rand::random()),
            limits: LeaseLimits {
                total: count,
                quota: LEASE_QUOTA,
            },
        };
        Some(Reservation {
            request,
            reserved,
            submissions: self.submissions.clone(),
        })
    }
}

impl Reservation {
    /// The leases to be requested under this reservation.
    #[must_use]
    pub const fn lease_request(&self) -> LeaseRequest {
        self.request
    }

    /// Submits the deliveries that were leased to the dispatcher. When it has stopped, the leases run out.
    pub fn submit(self, leased: Vec<LeasedDelivery>) {
        let submissions = self.submissions.clone();
        let reserved = self.assign(leased);
        if !reserved.is_empty() {
            let _ = submissions.send(reserved);
        }
    }

    /// Assigns each delivery its part of the reservation.
    pub(super) fn assign(mut self, leased: Vec<LeasedDelivery>) -> Vec<ReservedDelivery> {
        leased
            .into_iter()
            .filter_map(|delivery| {
                let reserved = self.reserved.split(1)?;
                Some(ReservedDelivery { delivery, reserved })
            })
            .collect()
    }
}

//! Dispatch capacity: reservations under which messages are inserted already leased.
//!
//! What this process stores it also attempts: the outbox reserves capacity, has the deliveries leased as they are
//! inserted, and submits them to the dispatcher, which need not look for them.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use sluice_store::{
    Committed, Held, Holder, LeaseLimits, LeaseRequest, LeaseToken, LeasedDelivery, Load,
    TenantShares, Timestamp, WebhookSet,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::limits::{LEASE_QUOTA, MAX_LEASED, MAX_LEASED_BYTES};
use crate::to_lease::ToLease;

/// How long a leased delivery may wait for a permit before its lease is released. The lease must outlive this and the
/// attempt.
pub const PERMIT_PATIENCE: Duration = Duration::from_secs(5);

/// How much longer than the wait for a permit and the deadline of its attempt a lease lasts: time to record the result
/// on a busy machine.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// Bytes that a permit of the second semaphore stands for: bodies are counted in kibibytes, so that the count fits.
const UNIT: u64 = 1024;

/// The number of deliveries that this process may lease, and the bytes of their bodies. Clones share it.
#[derive(Clone, Debug)]
pub struct DispatchCapacity {
    free: Arc<Semaphore>,
    free_units: Arc<Semaphore>,
    held: Arc<Mutex<Held>>,
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
    is_whole: bool,
    reserved: OwnedSemaphorePermit,
    units: OwnedSemaphorePermit,
    held: Arc<Mutex<Held>>,
    /// What is leased under it and not assigned yet.
    leased: Vec<HeldPart>,
    submissions: mpsc::UnboundedSender<Vec<ReservedDelivery>>,
}

/// A leased delivery and its part of the capacity, which is free again when its result is recorded.
#[derive(Debug)]
pub(super) struct ReservedDelivery {
    pub(super) delivery: LeasedDelivery,
    pub(super) reserved: ReservedPart,
}

/// A delivery's part of the capacity.
#[derive(Debug)]
pub(super) struct ReservedPart {
    place: OwnedSemaphorePermit,
    units: OwnedSemaphorePermit,
    held: HeldPart,
}

impl ReservedPart {
    /// The part of both.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.place.merge(other.place);
        self.units.merge(other.units);
        self.held.absorb(other.held);
        self
    }
}

/// What deliveries of one webhook take of its share and its owner's, until it is dropped.
#[derive(Debug)]
struct HeldPart {
    held: Arc<Mutex<Held>>,
    holder: Holder,
    load: Load,
}

impl HeldPart {
    fn new(held: &Arc<Mutex<Held>>, holder: Holder, load: Load) -> Self {
        held.lock().add(holder, load);
        Self {
            held: Arc::clone(held),
            holder,
            load,
        }
    }

    /// Takes over what another delivery of the webhook takes.
    fn absorb(&mut self, mut other: Self) {
        self.load = self.load.and(std::mem::take(&mut other.load));
    }
}

impl Drop for HeldPart {
    fn drop(&mut self) {
        self.held.lock().remove(self.holder, self.load);
    }
}

impl Submissions {
    /// Submissions to a dispatcher whose attempts take at most `attempt`.
    #[must_use]
    pub fn new(attempt: Duration) -> Self {
        Self::with_room(attempt, MAX_LEASED, MAX_LEASED_BYTES)
    }

    /// The same, with room for so many deliveries, with bodies of so many bytes.
    #[must_use]
    pub(crate) fn with_room(attempt: Duration, deliveries: usize, bytes: u64) -> Self {
        let (sender, submitted) = mpsc::unbounded_channel();
        let capacity = DispatchCapacity {
            free: Arc::new(Semaphore::new(deliveries)),
            free_units: Arc::new(Semaphore::new(units_of(bytes))),
            held: Arc::default(),
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
    /// Reserves as much as is free, at most `most` deliveries of `bytes` together, to be leased at `now`; `None` when
    /// nothing is free.
    #[must_use]
    pub fn reserve(&self, most: usize, bytes: u64, now: Timestamp) -> Option<Reservation> {
        let free = Load {
            deliveries: u32::try_from(self.free.available_permits()).unwrap_or(u32::MAX),
            bytes: u64::try_from(self.free_units.available_permits())
                .unwrap_or(u64::MAX)
                .saturating_mul(UNIT),
        };
        let count = part(&self.free, most)?;
        let units = part(&self.free_units, units_of(bytes).max(1))?;
        let reserved = Arc::clone(&self.free).try_acquire_many_owned(count).ok()?;
        let free_units = Arc::clone(&self.free_units);
        let reserved_units = free_units.try_acquire_many_owned(units).ok()?;
        let request = LeaseRequest {
            now,
            until: now.after(PERMIT_PATIENCE + self.attempt + LEASE_MARGIN),
            token: LeaseToken::from_random(rand::random()),
            limits: LeaseLimits {
                total: count,
                quota: LEASE_QUOTA,
                bytes: u64::from(units).saturating_mul(UNIT),
                // Where less is free than was asked for, a long body waits for what is held to be given back.
                oversized: units_of(bytes) <= usize::try_from(units).unwrap_or(usize::MAX),
            },
            shares: TenantShares::new(free, Arc::new(self.held.lock().clone())),
        };
        Some(Reservation {
            is_whole: usize::try_from(count).is_ok_and(|count| count == most)
                && request.limits.oversized,
            request,
            reserved,
            units: reserved_units,
            held: Arc::clone(&self.held),
            leased: Vec::new(),
            submissions: self.submissions.clone(),
        })
    }
}

/// Hands over what a commit stored that is on the disk: submits what was leased under the reservation, and tells of what is to be
/// leased.
pub fn hand_over(
    committed: &Committed,
    leased: Vec<LeasedDelivery>,
    reservation: Option<Reservation>,
    to_lease: &ToLease,
) {
    to_lease.tell(&committed.unleased);
    if let Some(reservation) = reservation {
        to_lease.tell_full(&committed.full);
        // Their results may have been recorded before anybody could see what was stored meanwhile.
        to_lease.tell(&reservation.freed(&committed.full));
        reservation.submit(leased);
    }
}

/// Bytes as permits, rounded up.
fn units_of(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX)
}

/// Makes free again what is more than needed.
fn give_back(permits: &mut OwnedSemaphorePermit, needed: usize) {
    let surplus = permits.num_permits().saturating_sub(needed);
    drop(permits.split(surplus));
}

/// What can be had of `most` permits; `None` when there is none.
fn part(free: &Semaphore, most: usize) -> Option<u32> {
    let part = u32::try_from(most.min(free.available_permits())).ok()?;
    (part > 0).then_some(part)
}

impl Reservation {
    /// The leases to be requested under this reservation.
    #[must_use]
    pub const fn lease_request(&self) -> &LeaseRequest {
        &self.request
    }

    /// Of which of these webhooks less is held now than when this was reserved: results of theirs were recorded, as a rule.
    fn freed(&self, webhooks: &WebhookSet) -> WebhookSet {
        self.request.shares.freed(&self.held.lock(), webhooks)
    }

    /// Whether as much was free as was asked for.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Keeps no more than these leases need, so that the next can be requested while their deliveries are loaded.
    pub(super) fn narrow(&mut self, leased: &[(Holder, Load)]) {
        let all: Load = leased.iter().map(|(_, load)| *load).sum();
        let places = usize::try_from(all.deliveries).unwrap_or(usize::MAX);
        give_back(&mut self.reserved, places);
        // Each body is rounded up.
        give_back(&mut self.units, units_of(all.bytes).saturating_add(places));
        self.leased = leased
            .iter()
            .map(|(holder, load)| HeldPart::new(&self.held, *holder, *load))
            .collect();
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
                let bytes = u64::try_from(delivery.body.len()).unwrap_or(u64::MAX);
                // An oversized one is longer than all that was reserved.
                let units = units_of(bytes).min(self.units.num_permits());
                let reserved = ReservedPart {
                    place: self.reserved.split(1)?,
                    units: self.units.split(units)?,
                    held: HeldPart::new(&self.held, delivery.holder(), Load::of_one(bytes)),
                };
                Some(ReservedDelivery { delivery, reserved })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::Tenant;

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_millis(0);

    #[test]
    fn deliveries_and_their_bytes_are_reserved_until_they_are_given_back() {
        let capacity = Submissions::with_room(Duration::ZERO, 100, 10 * UNIT).capacity();
        let first = capacity.reserve(3, 4 * UNIT + 1, NOW).expect("is free");
        let limits = first.lease_request().limits;
        assert_eq!((limits.total, limits.bytes), (3, 5 * UNIT));
        assert!(
            limits.oversized && first.is_whole(),
            "as much as was asked for"
        );
        let second = capacity.reserve(9, 9 * UNIT, NOW).expect("half is free");
        let limits = second.lease_request().limits;
        assert_eq!((limits.bytes, limits.oversized), (5 * UNIT, false));
        assert!(!second.is_whole());
        assert!(capacity.reserve(1, 1, NOW).is_none(), "no byte is free");
        drop(first);
        let third = capacity.reserve(1, UNIT, NOW).expect("is free again");
        assert_eq!(third.lease_request().limits.total, 1);
    }

    #[test]
    fn what_is_leased_keeps_its_part_before_it_is_loaded_and_gives_the_rest_back() {
        let capacity = Submissions::with_room(Duration::ZERO, 100, 10 * UNIT).capacity();
        let mut first = capacity.reserve(100, 10 * UNIT, NOW).expect("is free");
        assert!(capacity.reserve(1, 1, NOW).is_none(), "nothing is left");
        let (holder, tenant) = (Holder::default(), Tenant::default());
        let leased = Load {
            deliveries: 2,
            bytes: UNIT,
        };
        first.narrow(&[(holder, leased)]);
        let second = capacity.reserve(100, 10 * UNIT, NOW).expect("is free");
        let request = second.lease_request();
        // One kibibyte, and as much again for each body that is rounded up.
        assert_eq!((request.limits.total, request.limits.bytes), (98, 7 * UNIT));
        assert_eq!(request.shares.held(tenant), leased);
        drop(first);
        drop(second);
        let third = capacity
            .reserve(100, 10 * UNIT, NOW)
            .expect("is free again");
        assert!(third.is_whole());
        assert_eq!(third.lease_request().shares.held(tenant), Load::default());
    }
}

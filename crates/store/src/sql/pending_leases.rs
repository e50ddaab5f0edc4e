//! Leases that are granted, whose deliveries are still to be loaded: the next can be requested meanwhile.

use super::{
    load_leased::{LeasedKey, load},
    store::Store,
};
use crate::{Holder, LeaseRequest, LeasedDelivery, Load, StoreError, backend::PendingWrite};

/// Leases that the process can no longer lose to another, and whose deliveries it does not have yet.
#[derive(Debug, Default)]
#[must_use = "what is not loaded is not delivered before its lease runs out"]
pub struct PendingLeases {
    granted: Option<Granted>,
    is_due: bool,
}

#[derive(Debug)]
pub(super) struct Granted {
    pub(super) store: Store,
    pub(super) request: LeaseRequest,
    pub(super) keys: Vec<LeasedKey>,
    /// How much is leased of each webhook.
    pub(super) loads: Vec<(Holder, Load)>,
    /// The webhooks in the order of their turns, each with whether its deliveries are probes.
    pub(super) webhooks: Vec<(i64, bool)>,
    pub(super) pending: PendingWrite,
}

impl PendingLeases {
    /// What a transaction granted, and whether anything was due.
    pub(super) const fn of(granted: Option<Granted>, is_due: bool) -> Self {
        Self { granted, is_due }
    }

    /// Whether anything was due. Where nothing is leased all the same, the webhooks have as much leased as they may.
    #[must_use]
    pub const fn is_due(&self) -> bool {
        self.is_due
    }

    /// How much is leased of each webhook.
    #[must_use]
    pub fn loads(&self) -> &[(Holder, Load)] {
        self.granted.as_ref().map_or(&[], |granted| &granted.loads)
    }

    /// How much is leased in all.
    #[must_use]
    pub fn load(&self) -> Load {
        self.loads().iter().map(|(_, load)| *load).sum()
    }

    /// Waits until what is to be delivered is on the disk, and loads it.
    ///
    /// # Errors
    /// A failure of the database; the deliveries are due again when their leases run out.
    pub async fn deliveries(self) -> Result<Vec<LeasedDelivery>, StoreError> {
        let Some(Granted {
            store,
            request,
            keys,
            webhooks,
            pending,
            ..
        }) = self.granted
        else {
            return Ok(Vec::new());
        };
        pending.durable().await?;
        // The turn to write is over while this is read.
        let mut read = store.read().await?;
        load(&mut read, &keys, &webhooks, &request, &store.keys).await
    }
}

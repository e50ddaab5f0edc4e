//! Leases that are granted, whose deliveries are still to be loaded: the next can be requested meanwhile.

use super::{
    load_leased::{LeasedKey, load},
    store::Store,
};
use crate::{
    Holder, LeaseRequest, LeasedDelivery, Load, StoreError, WebhookSet, backend::PendingWrite,
};

/// Leases that the process can no longer lose to another, and whose deliveries it does not have yet.
#[derive(Debug, Default)]
#[must_use = "what is not loaded is not delivered before its lease runs out"]
pub struct PendingLeases {
    granted: Option<Granted>,
    due: WebhookSet,
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
    /// What a transaction granted of these webhooks, of which something was due.
    pub(super) const fn of(granted: Option<Granted>, due: WebhookSet) -> Self {
        Self { granted, due }
    }

    /// Of which webhooks something was due. Those of which nothing is leased all the same have as much leased as they may.
    #[must_use]
    pub const fn due(&self) -> &WebhookSet {
        &self.due
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

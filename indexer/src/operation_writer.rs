//! Operation writer: tells owners what becomes of their webhooks, where one of these is to be told.
//!
//! It goes by how webhooks, endpoints and quotas stand, not by what changes them, and the ids of what it tells follow from that:
//! whichever process switched a webhook off, its owner is told once, also when that process dies right after it. What has come and gone
//! between two looks is not told. Gaps are told with the gaps themselves, by the session that finds them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use service_kit::{CancellationToken, Clock, OutageLog};
use sluice_store::{Commit, Commitment, MessageId, Store, StoreError, Timestamp};
use tokio::time::sleep;

use crate::{events::operations, to_lease::ToLease};

/// Pause between two looks: an owner who is told within seconds is told at once.
const TICK: Duration = Duration::from_secs(5);

/// Looks at quotas between two that count what is stored, which takes the longer the more it is: a minute.
const LOOKS_PER_COUNT: u64 = 12;

/// The task that writes operational messages.
#[derive(Debug)]
pub struct OperationWriter {
    /// Where they go.
    pub store: Store,
    /// Told of the webhooks of those that are stored.
    pub stored: Arc<ToLease>,
    /// What time it is.
    pub clock: Clock,
}

impl OperationWriter {
    /// Writes operational messages until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut outage = OutageLog::new("writing operational messages");
        let mut told = HashSet::new();
        let mut looks = 0..;
        while !shutdown.is_cancelled() {
            let counts_stored = looks
                .next()
                .is_some_and(|look: u64| look.is_multiple_of(LOOKS_PER_COUNT));
            match self.write_due(&mut told, counts_stored).await {
                Ok(()) => outage.recovered(),
                Err(error) => outage.failed(error.outage(), &error),
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sleep(TICK) => {}
            }
        }
    }

    /// Writes what is due. `told` are the ids of what was due at the last look; what an earlier process told is known by its id.
    async fn write_due(
        &self,
        told: &mut HashSet<MessageId>,
        counts_stored: bool,
    ) -> Result<(), StoreError> {
        let now = Timestamp::from(self.clock.now());
        let troubled = self.store.troubled_webhooks().await?;
        let used_up = self.store.used_up_quotas(now, counts_stored).await?;
        if troubled.is_empty() && used_up.is_empty() {
            told.clear();
            return Ok(());
        }
        let last_slot = self.store.checkpoint(Commitment::Confirmed).await?;
        let moment = (last_slot.unwrap_or(0), now);
        let mut messages = Vec::new();
        for (recipient, kinds, webhook) in &troubled {
            messages.extend(operations::troubles(recipient, kinds, webhook, moment));
        }
        messages.extend(used_up.iter().map(|quota| operations::quota(quota, moment)));
        let due = messages.iter().map(|message| message.id.clone()).collect();
        messages.retain(|message| !told.contains(&message.id));
        if !messages.is_empty() {
            let committed = self.store.commit(&Commit::messages(&messages, now)).await?;
            self.stored.tell(&committed.unleased);
        }
        *told = due;
        Ok(())
    }
}

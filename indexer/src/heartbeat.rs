//! Heartbeat writer: stores one heartbeat per interval for each webhook that asks for them.
//!
//! They let an endpoint distinguish "nothing happened" from "broken".
//!
//! Heartbeats are messages like all others, numbered and signed. The one of an interval has the same id
//! in every process, so a restart or another leader repeats none. While the circuit breaker of an endpoint is open it
//! gets none, so that they do not pile up for it. Nor does a webhook that was switched off, before it is told which slots it did
//! not watch: of these a heartbeat would say that nothing is missing.

use std::{collections::HashMap, sync::Arc, time::Duration};

use service_kit::{CancellationToken, Clock, OutageLog};
use sluice_store::{
    Access, Breaker, Commit, Commitment, MessageKind, NewMessage, Store, StoreError, Timestamp,
    WebhookId,
};
use tokio::{sync::watch, time::sleep};

use crate::{
    events::{
        message_id::{MessageIdentity, message_id},
        payload,
        subscriber::Subscriber,
        subscription_index::Subscriptions,
    },
    to_lease::ToLease,
};

/// Pause between two looks for due heartbeats: intervals are whole seconds.
const TICK: Duration = Duration::from_secs(1);

/// The task that writes heartbeats.
#[derive(Debug)]
pub struct HeartbeatWriter {
    /// Where they go.
    pub store: Store,
    /// The active webhooks.
    pub subscriptions: watch::Receiver<Arc<Subscriptions>>,
    /// Told of the webhooks of those that are stored.
    pub stored: Arc<ToLease>,
    /// Decides which are due.
    pub clock: Clock,
}

impl HeartbeatWriter {
    /// Writes heartbeats until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut outage = OutageLog::new("writing heartbeats");
        let mut written = HashMap::new();
        while !shutdown.is_cancelled() {
            match self.write_due(&mut written).await {
                Ok(()) => outage.recovered(),
                Err(error) => outage.failed(error.outage(), &error),
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sleep(TICK) => {}
            }
        }
    }

    /// Writes what is due. `written` are the numbers of the last ones.
    async fn write_due(&self, written: &mut HashMap<WebhookId, u64>) -> Result<(), StoreError> {
        let now = Timestamp::from(self.clock.now());
        let subscriptions = Arc::clone(&self.subscriptions.borrow());
        let mut last_slots = HashMap::new();
        let mut numbers = HashMap::new();
        let mut messages = Vec::new();
        for webhook in subscriptions.webhooks() {
            let Some(number) = number(webhook, now) else {
                continue;
            };
            if written.get(&webhook.id) != Some(&number) {
                let last_slot = match last_slots.get(&webhook.commitment) {
                    Some(known) => *known,
                    None => self.last_slot(webhook.commitment).await?,
                };
                last_slots.insert(webhook.commitment, last_slot);
                messages.extend(self.message(webhook, number, last_slot, now).await?);
            }
            numbers.insert(webhook.id.clone(), number);
        }
        if !messages.is_empty() {
            // Read last, so that it names those that were switched off meanwhile, too. Theirs are due again once they are told.
            let paused = self.store.paused_with_heartbeat().await?;
            messages.retain(|message| !paused.contains(&message.webhook));
            numbers.retain(|webhook, _| !paused.contains(webhook));
        }
        if !messages.is_empty() {
            let commit = Commit::messages(&messages, now);
            let committed = self.store.commit(&commit).await?;
            self.stored.tell(&committed.unleased);
        }
        *written = numbers;
        Ok(())
    }

    /// The last slot of which everything is stored. Nothing at processed is missing once it is confirmed.
    async fn last_slot(&self, commitment: Commitment) -> Result<Option<u64>, StoreError> {
        let commitment = commitment.max(Commitment::Confirmed);
        self.store.checkpoint(commitment).await
    }

    async fn message(
        &self,
        webhook: &Subscriber,
        number: u64,
        last_slot: Option<u64>,
        now: Timestamp,
    ) -> Result<Option<NewMessage>, StoreError> {
        let endpoint = self.store.endpoint(&webhook.id).await?;
        let page = self
            .store
            .messages_after(&Access::All, &webhook.id, u64::MAX, 0)
            .await?;
        let (Some(endpoint), Some(page)) = (endpoint, page) else {
            // Deleted meanwhile.
            return Ok(None);
        };
        if endpoint.breaker != Breaker::Closed {
            return Ok(None);
        }
        let slot = last_slot.unwrap_or(0);
        let data = payload::heartbeat(webhook, last_slot, page.last_sequence);
        let suffix = payload::suffix(slot, webhook.commitment, &data);
        Ok(Some(NewMessage {
            id: message_id(
                &webhook.id,
                webhook.commitment,
                MessageIdentity::Heartbeat(number),
            ),
            webhook: webhook.id.clone(),
            kind: MessageKind::Heartbeat,
            commitment: webhook.commitment,
            slot,
            order_key: None,
            body: payload::template(MessageKind::Heartbeat, now, &webhook.id, suffix),
        }))
    }
}

/// How many of the webhook's intervals have passed since 1970; `None` when it wants no heartbeats.
fn number(webhook: &Subscriber, now: Timestamp) -> Option<u64> {
    let interval = webhook.heartbeat?.as_secs();
    u64::try_from(now.unix_seconds())
        .ok()?
        .checked_div(interval)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use sluice_store::{EventKind, Filters, NewWebhook, Secret, WebhookDefinition};
    use solana_pubkey::Pubkey;

    use super::*;

    fn definition(active: bool) -> WebhookDefinition {
        let filters = Filters {
            accounts: vec![Pubkey::new_from_array([1; 32])],
            ..Filters::default()
        };
        let events = [EventKind::Transaction].into_iter().collect();
        WebhookDefinition {
            active,
            heartbeat: Some(Duration::from_secs(60)),
            ..WebhookDefinition::new("https://example.com/".to_owned(), events, filters)
        }
    }

    /// A webhook that has heartbeats, and whoever writes them at a time that stands still, in one of its intervals.
    async fn setup(store: &Store) -> (WebhookId, HeartbeatWriter) {
        let clock = Clock::stopped_at(SystemTime::UNIX_EPOCH + Duration::from_secs(6_000_000));
        let new = NewWebhook {
            id: WebhookId::from_random([1; 16]),
            owner: Access::All,
            relay_until: None,
            definition: definition(true),
            secret: Secret::from_random([1; 32]),
            created: Timestamp::from(clock.now()),
        };
        let id = store.create_webhook(&new, 9).await.expect("creates").id;
        let active = store.active_webhooks().await.expect("reads");
        let (_, subscriptions) = watch::channel(Arc::new(Subscriptions::new(&active)));
        let writer = HeartbeatWriter {
            store: store.clone(),
            subscriptions,
            stored: Arc::default(),
            clock,
        };
        (id, writer)
    }

    async fn reach(store: &Store, slot: u64) {
        let now = Timestamp::from_unix_millis(1);
        let commit = Commit::slot(Commitment::Confirmed, slot, &[], now);
        store.commit(&commit).await.expect("commits");
    }

    async fn switch(store: &Store, id: &WebhookId, active: bool) {
        let definition = definition(active);
        let updated = store.update_webhook(&Access::All, id, &definition, None);
        updated.await.expect("updates").expect("exists");
    }

    #[tokio::test]
    async fn a_webhook_gets_no_heartbeat_before_it_is_told_what_it_did_not_watch() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let store = Store::open(&folder.path().join("sluice.db")).await;
        let store = store.expect("opens");
        let (id, writer) = setup(&store).await;
        let mut written = HashMap::new();
        let mut count_after_a_look = async || {
            writer.write_due(&mut written).await.expect("writes");
            let page = store.messages_after(&Access::All, &id, 0, 9).await;
            page.expect("reads").expect("exists").messages.len()
        };
        reach(&store, 10).await;
        switch(&store, &id, false).await;
        assert_eq!(count_after_a_look().await, 0, "it is not known to be off");
        reach(&store, 20).await;
        switch(&store, &id, true).await;
        assert_eq!(count_after_a_look().await, 0, "it is on, and not told");
        let pauses = store.ended_pauses().await.expect("reads");
        assert_eq!(pauses.len(), 1);
        store.forget_pause(&pauses[0]).await.expect("forgets");
        assert_eq!(count_after_a_look().await, 1, "in the same interval");
        assert_eq!(count_after_a_look().await, 1, "one of each interval");
    }
}

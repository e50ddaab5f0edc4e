//! Retention: removes messages that are too old, that are beyond the quota of their owner, and finished ones that take too much room.

use std::time::Duration;

use service_kit::{CancellationToken, Clock, OutageLog};
use sluice_store::{Removed, Retention, Store, StoreError, Timestamp};
use tokio::time::sleep;

/// How often messages are looked for that are beyond the quota of their owner: a busy webhook stores many times a small quota in
/// ten minutes.
const INTERVAL: Duration = Duration::from_secs(60);

/// In how many of these intervals old messages are looked for once: all of them are read for that, and their time is counted in
/// days.
const INTERVALS_TO_OLD: u64 = 10;

/// What is kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Finished messages.
    pub finished: Duration,
    /// Messages that no endpoint accepts.
    pub undelivered: Duration,
    /// Bytes, as long as there are finished messages that can be removed.
    pub bytes: u64,
}

/// What is looked for at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    /// What is beyond the quotas of its owner.
    BeyondQuotas,
    /// That, and what is too old or takes too much room.
    Everything,
}

impl Search {
    /// That of an interval, counted from the start.
    const fn of(interval: u64) -> Self {
        if interval.is_multiple_of(INTERVALS_TO_OLD) {
            Self::Everything
        } else {
            Self::BeyondQuotas
        }
    }

    async fn remove(
        self,
        store: &Store,
        limits: Limits,
        now: Timestamp,
    ) -> Result<Removed, StoreError> {
        match self {
            Self::BeyondQuotas => store.prune_to_quotas(now).await,
            Self::Everything => {
                let retention = Retention {
                    now,
                    finished_before: now.before(limits.finished),
                    undelivered_before: Some(now.before(limits.undelivered)),
                    max_bytes: Some(limits.bytes),
                };
                store.prune(&retention).await
            }
        }
    }
}

/// Removes old messages, and those beyond the quotas of their owners, until `shutdown`.
pub async fn run(store: Store, limits: Limits, clock: Clock, shutdown: CancellationToken) {
    let mut outage = OutageLog::new("removing old messages");
    for interval in 0.. {
        if shutdown.is_cancelled() {
            return;
        }
        let now = Timestamp::from(clock.now());
        match Search::of(interval).remove(&store, limits, now).await {
            Ok(removed) => {
                outage.recovered();
                log(&removed, limits);
            }
            Err(error) => outage.failed(error.outage(), &error),
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = sleep(INTERVAL) => {}
        }
    }
}

fn log(removed: &Removed, limits: Limits) {
    if removed.finished > 0 {
        tracing::info!(messages = removed.finished, "old messages removed");
    }
    if removed.for_room > 0 {
        let (messages, limit) = (removed.for_room, limits.bytes);
        tracing::warn!(
            messages,
            limit,
            "finished messages removed before their time, for want of room"
        );
    }
    if removed.for_quotas > 0 {
        let messages = removed.for_quotas;
        tracing::warn!(
            messages,
            "messages removed of owners who had more than their quota says"
        );
    }
    for (webhook, messages) in &removed.undelivered {
        tracing::error!(%webhook, messages, "messages that were not accepted in time are removed");
    }
    if removed.too_large {
        tracing::error!(
            limit = limits.bytes,
            "more is kept than allowed, because it is not delivered yet"
        );
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::{
        Access, ApiKeyId, ApiKeySecret, BodyTemplate, Commit, Commitment, EventKind, Filters,
        MessageId, MessageKind, NewApiKey, NewMessage, NewWebhook, Quotas, Scopes, Secret,
        WebhookDefinition, WebhookId,
    };
    use solana_pubkey::Pubkey;
    use tempfile::TempDir;

    use super::*;

    const START: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

    /// Nothing is kept for long.
    const LIMITS: Limits = Limits {
        finished: Duration::ZERO,
        undelivered: Duration::from_secs(60),
        bytes: u64::MAX,
    };

    #[test]
    fn what_is_beyond_a_quota_is_looked_for_every_minute_and_what_is_old_every_ten() {
        let minutes = |interval: u64| interval * INTERVAL.as_secs() / 60;
        let old: Vec<_> = (0..30)
            .filter(|interval| Search::of(*interval) == Search::Everything)
            .map(minutes)
            .collect();
        assert_eq!(old, [0, 10, 20]);
        assert_eq!(minutes(1), 1, "quotas are looked for in each");
    }

    /// A webhook, of a key of its own with these quotas, that is owed messages of half a mebibyte.
    async fn owed(store: &Store, number: u8, quotas: Quotas, messages: u8) -> WebhookId {
        let key = NewApiKey {
            id: ApiKeyId::from_random([number; 8]),
            name: number.to_string(),
            hash: ApiKeySecret::from_random([number; 32]).hash(),
            created: START,
            expires: None,
            scopes: Scopes::ALL,
        };
        let created = store.create_limited_api_key(&key, quotas).await;
        let filters = Filters {
            accounts: vec![Pubkey::new_from_array([1; 32])],
            ..Filters::default()
        };
        let events = [EventKind::Transaction].into_iter().collect();
        let new = NewWebhook {
            id: WebhookId::from_random([number; 16]),
            owner: Access::Key(created.expect("created").id),
            relay_until: None,
            definition: WebhookDefinition::new("https://example.com/".to_owned(), events, filters),
            secret: Secret::from_random([number; 32]),
            created: START,
        };
        let id = store.create_webhook(&new, 1).await.expect("created").id;
        let rest = format!(",\"data\":\"{}\"}}", "x".repeat(1 << 19));
        let message = |each| NewMessage {
            id: MessageId::from_bytes([16 * number + each; 32]),
            webhook: id.clone(),
            kind: MessageKind::Event(EventKind::Transaction),
            commitment: Commitment::Confirmed,
            slot: 7,
            order_key: None,
            body: BodyTemplate::new("{\"sequence\":".to_owned(), rest.as_str().into()),
        };
        let messages: Vec<_> = (0..messages).map(message).collect();
        let commit = Commit::slot(Commitment::Confirmed, 7, &messages, START);
        store.commit(&commit).await.expect("commits");
        id
    }

    async fn opened() -> (Store, TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("sluice.db")).await;
        (store.expect("opens"), folder)
    }

    #[tokio::test]
    async fn between_two_searches_for_old_messages_those_beyond_a_quota_go() {
        let (store, _folder) = opened().await;
        let small = Quotas {
            stored_mib: Some(1),
            ..Quotas::default()
        };
        owed(&store, 1, small, 4).await;
        let old = owed(&store, 2, Quotas::default(), 2).await;
        let late = START.after(2 * LIMITS.undelivered);
        let removed = Search::of(1).remove(&store, LIMITS, late).await;
        let removed = removed.expect("removes");
        assert_eq!((removed.for_quotas, removed.undelivered), (3, Vec::new()));
        let removed = Search::of(INTERVALS_TO_OLD).remove(&store, LIMITS, late);
        let removed = removed.await.expect("removes").undelivered;
        assert!(removed.contains(&(old, 2)), "{removed:?}");
    }
}

//! Webhooks, as their owners create, read, update and delete them.

use std::time::Duration;

use sluice_store::{
    Access, Commitment, DeliveryOrder, Filters, Idempotency, LeaseRequest, Retention, StoreError,
    TenantShares, WebhookDefinition, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    a_webhook_comes_back_as_it_was_written,
    a_creation_is_found_by_its_owner_under_its_idempotency_key,
    lists_go_through_every_webhook_once,
    an_update_of_an_old_version_is_refused,
    the_store_refuses_a_webhook_that_can_never_fire,
    a_deleted_webhook_is_gone_at_once_however_much_it_is_owed,
    a_temporary_webhook_is_leased_by_name_and_ends,
);

async fn a_webhook_comes_back_as_it_was_written(fixture: &Fixture) {
    let store = &fixture.store;
    let mut new = webhook(1);
    new.definition = WebhookDefinition {
        commitment: Commitment::Processed,
        order: DeliveryOrder::PerKey,
        description: Some("a \"note\"".to_owned()),
        headers: vec![("x-one".to_owned(), "1".to_owned())],
        gzip: true,
        heartbeat: Some(Duration::from_secs(60)),
        ..definition()
    };
    let created = store.create_webhook(&new, 1).await.expect("created");
    let read = store.webhook(&Access::All, &created.id).await;
    assert_eq!(read.expect("reads"), Some(created.clone()));
    assert_eq!(created.definition, new.definition);
    assert_eq!((created.version, created.api_key), (1, None));
    assert_eq!((created.last_triggered, created.created), (None, NOW));

    let past_the_limit = store.create_webhook(&webhook(2), 1).await;
    assert!(matches!(
        past_the_limit,
        Err(StoreError::TooManyWebhooks { limit: 1 })
    ));

    let delete = async || store.delete_webhook(&Access::All, &created.id).await;
    assert!(delete().await.expect("deletes"));
    assert!(!delete().await.expect("is gone"));
    let read = store.webhook(&Access::All, &created.id).await;
    assert_eq!(read.expect("reads"), None);
}

async fn a_creation_is_found_by_its_owner_under_its_idempotency_key(fixture: &Fixture) {
    let store = &fixture.store;
    let (key, _) = with_key(store, 1, "tenant").await;
    let owner = Access::Key(key.clone());
    let mut new = webhook(1);
    new.owner = owner.clone();
    let once = |temporary| Idempotency::new("once".to_owned(), &new.definition, temporary);
    let found = async |owner: &Access| {
        let found = store.created_webhook(owner, &once(false)).await;
        found.expect("reads")
    };
    assert!(found(&owner).await.is_none());
    let created = store.create_webhook_once(&new, 1, &once(false)).await;
    let created = created.expect("created");
    let again = found(&owner).await.expect("exists");
    assert_eq!(
        (again.webhook, again.secret, again.repeated),
        (created.webhook, created.secret, true)
    );
    assert!(found(&Access::All).await.is_none());
    let reused = store.created_webhook(&owner, &once(true)).await;
    assert!(matches!(
        reused,
        Err(StoreError::IdempotencyKeyReused { .. })
    ));
    let revoked = store.revoke_api_key(key.as_str(), NOW).await;
    revoked.expect("revokes");
    let refused = store.created_webhook(&owner, &once(false)).await;
    assert!(matches!(refused, Err(StoreError::NoSuchApiKey { .. })));
}

async fn lists_go_through_every_webhook_once(fixture: &Fixture) {
    let store = &fixture.store;
    for number in 1..=5 {
        with_webhook(store, number).await;
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = store.list_webhooks(&Access::All, after, 2).await;
        let page = page.expect("lists");
        assert!(page.webhooks.len() <= 2);
        seen.extend(page.webhooks.into_iter().map(|webhook| webhook.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected: Vec<_> = (1..=5)
        .map(|number| WebhookId::from_random([number; 16]))
        .collect();
    assert_eq!(seen, expected);
    let whole = store.list_webhooks(&Access::All, None, 5).await;
    assert_eq!(
        whole.expect("lists").next,
        None,
        "a full last page is the last"
    );
}

async fn an_update_of_an_old_version_is_refused(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let update = async |expected| {
        store
            .update_webhook(&Access::All, &id, &definition(), expected)
            .await
    };
    let updated = update(Some(1)).await.expect("updates").expect("exists");
    assert_eq!(updated.version, 2);
    assert!(matches!(
        update(Some(1)).await,
        Err(StoreError::VersionConflict { current: 2 })
    ));
    assert!(update(None).await.is_ok());
}

async fn the_store_refuses_a_webhook_that_can_never_fire(fixture: &Fixture) {
    let store = &fixture.store;
    let mut no_kind = webhook(1);
    no_kind.definition.events = std::iter::empty().collect();
    assert!(matches!(
        store.create_webhook(&no_kind, 9).await,
        Err(StoreError::MatchesNothing)
    ));
    let mut no_key = webhook(1);
    no_key.definition.filters = Filters::default();
    assert!(matches!(
        store.create_webhook(&no_key, 9).await,
        Err(StoreError::MatchesNothing)
    ));
    let revision = store.webhook_revision().await.expect("reads");
    assert_eq!(revision.0, 0, "nothing was written");
}

async fn a_deleted_webhook_is_gone_at_once_however_much_it_is_owed(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let messages: Vec<_> = (0..1_200_u16)
        .map(|number| {
            let mut message = message(&id, 0);
            let mut digest = [0; 32];
            digest[..2].copy_from_slice(&number.to_le_bytes());
            message.id = sluice_store::MessageId::from_bytes(digest);
            message
        })
        .collect();
    store_messages(store, &messages).await;
    assert!(
        store
            .delete_webhook(&Access::All, &id)
            .await
            .expect("deletes")
    );
    assert!(lease(store, NOW).await.is_empty());
    let page = store.messages_after(&Access::All, &id, 0, 1).await;
    assert_eq!(page.expect("reads"), None);
    let nothing = Retention {
        now: NOW,
        finished_before: NOW,
        undelivered_before: None,
        max_bytes: None,
    };
    store.prune(&nothing).await.expect("prunes");
    let stats = store.queue_stats().await.expect("counts");
    assert_eq!((stats.pending, stats.kept, stats.bytes), (0, 0, 0));
}

async fn a_temporary_webhook_is_leased_by_name_and_ends(fixture: &Fixture) {
    let store = &fixture.store;
    let until = NOW.after(Duration::from_secs(60));
    let mut new = webhook(1);
    new.relay_until = Some(until);
    let id = store.create_webhook(&new, 9).await.expect("created").id;
    store_messages(store, &[message(&id, 1)]).await;
    assert!(lease(store, NOW).await.is_empty(), "it is not posted");
    assert_eq!(store.next_due().await.expect("reads"), None);
    let by_name = async |now| {
        let request = LeaseRequest {
            now,
            until: now,
            token: token(),
            limits: PLENTY,
            shares: TenantShares::unlimited(),
        };
        let leased = store.lease_relayed(&Access::All, &id, &request).await;
        leased.expect("leases").len()
    };
    assert_eq!(by_name(NOW).await, 1);
    assert_eq!(by_name(until).await, 0);
    let longer = until.after(Duration::from_secs(60));
    let extended = store.extend_relay(&Access::All, &id, longer).await;
    assert!(extended.expect("extends"));
    assert_eq!(by_name(until).await, 1);
    assert_eq!(store.expire_relays(until).await.expect("expires"), 0);
    assert_eq!(store.expire_relays(longer).await.expect("expires"), 1);
    let read = store.webhook(&Access::All, &id).await;
    assert_eq!(read.expect("reads"), None);
}

//! Webhooks and their revisions.

use super::*;

#[tokio::test]
async fn a_webhook_comes_back_as_it_was_written() {
    let fixture = fixture().await;
    let store = &fixture.store;
    let created = store.create_webhook(&webhook(1), 1).await.expect("created");
    assert_eq!(
        store.webhook(&created.id).await.expect("read"),
        Some(created.clone())
    );
    assert_eq!(created.definition, definition());
    assert_eq!(created.last_triggered, None);

    let past_the_limit = store.create_webhook(&webhook(2), 1).await;
    assert!(matches!(
        past_the_limit,
        Err(StoreError::TooManyWebhooks { limit: 1 })
    ));

    assert!(store.delete_webhook(&created.id).await.expect("deletes"));
    assert!(!store.delete_webhook(&created.id).await.expect("is gone"));
    assert_eq!(store.webhook(&created.id).await.expect("read"), None);
}

#[tokio::test]
async fn lists_go_through_every_webhook_once() {
    let fixture = fixture().await;
    let store = &fixture.store;
    for number in 1..=5 {
        with_webhook(store, number).await;
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = store.list_webhooks(after, 2).await.expect("lists");
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
    assert_eq!(
        store.list_webhooks(None, 5).await.expect("lists").next,
        None,
        "a full last page is the last"
    );
}

#[tokio::test]
async fn the_revision_counts_what_changes_matching_and_nothing_else() {
    let fixture = fixture().await;
    let store = &fixture.store;
    assert_eq!(store.webhook_revision().await.expect("read"), Revision(0));
    let id = with_webhook(store, 1).await;
    assert_eq!(store.webhook_revision().await.expect("read"), Revision(1));

    let mut changed = definition();
    changed.url = "https://example.com/elsewhere".to_owned();
    store
        .update_webhook(&id, &changed)
        .await
        .expect("updates")
        .expect("exists");
    assert_eq!(
        store.webhook_revision().await.expect("read"),
        Revision(1),
        "the URL is not matched"
    );

    changed.active = false;
    store
        .update_webhook(&id, &changed)
        .await
        .expect("updates")
        .expect("exists");
    let live = store.live_webhooks().await.expect("read");
    assert_eq!((live.revision, live.webhooks.len()), (Revision(2), 0));

    changed.active = true;
    changed.filters.programs.clear();
    store
        .update_webhook(&id, &changed)
        .await
        .expect("updates")
        .expect("exists");
    let live = store.live_webhooks().await.expect("read");
    assert_eq!(live.revision, Revision(3));
    assert_eq!(live.webhooks[0].filters, changed.filters);

    store.delete_webhook(&id).await.expect("deletes");
    assert_eq!(store.webhook_revision().await.expect("read"), Revision(4));
    assert_eq!(
        store.update_webhook(&id, &changed).await.expect("answers"),
        None
    );
}

#[tokio::test]
async fn the_database_itself_refuses_a_webhook_that_can_never_fire() {
    let fixture = fixture().await;
    let store = &fixture.store;
    let mut no_kind = webhook(1);
    no_kind.definition.events = std::iter::empty().collect();
    assert!(matches!(
        store.create_webhook(&no_kind, 9).await,
        Err(StoreError::Database(_))
    ));
    let mut no_key = webhook(1);
    no_key.definition.filters = Filters::default();
    assert!(matches!(
        store.create_webhook(&no_key, 9).await,
        Err(StoreError::Database(_))
    ));
    assert_eq!(
        store.webhook_revision().await.expect("read"),
        Revision(0),
        "nothing was written"
    );
}

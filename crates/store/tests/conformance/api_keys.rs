//! API keys, and the webhooks that belong to them.

use sluice_store::{
    Access, ApiKeyHash, ApiKeyId, ApiKeySecret, FilterEdit, FilterLimits, Filters, NewApiKey,
    NewWebhook, Quotas, Scope, Scopes, Store, StoreError, Timestamp, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    a_key_is_known_by_its_hash_until_it_is_revoked,
    an_expired_key_is_not_known_while_its_webhooks_go_on,
    a_key_is_found_with_the_scopes_that_it_was_made_with,
    a_webhook_exists_for_its_key_alone,
    webhooks_of_a_revoked_key_stop_and_can_be_adopted,
    a_caller_whose_key_was_revoked_meanwhile_writes_nothing_more,
    a_key_is_kept_to_its_quotas_and_others_are_not,
);

async fn a_key_is_known_by_its_hash_until_it_is_revoked(fixture: &Fixture) {
    let store = &fixture.store;
    assert!(!store.api_keys_in_use().await.expect("reads"));
    let (id, secret) = with_key(store, 1, "one").await;
    assert!(store.api_keys_in_use().await.expect("reads"));
    let find = async |hash: &ApiKeyHash| store.api_key_by_hash(hash).await.expect("reads");
    let found = find(&ApiKeyHash::of(secret.expose())).await;
    assert_eq!(found.map(|found| found.id), Some(id.clone()));
    assert_eq!(find(&ApiKeyHash::of("sluice_00")).await, None);

    let same_name = NewApiKey {
        id: ApiKeyId::from_random([2; 8]),
        name: "one".to_owned(),
        hash: ApiKeySecret::from_random([2; 32]).hash(),
        created: NOW,
        expires: None,
        scopes: Scopes::ALL,
    };
    assert!(matches!(
        store.create_api_key(&same_name).await,
        Err(StoreError::ApiKeyExists { .. })
    ));

    let revoked = store.revoke_api_key("one", NOW).await.expect("revokes");
    assert_eq!(revoked.expect("was there").revoked, Some(NOW));
    let again = store.revoke_api_key(id.as_str(), NOW).await;
    assert_eq!(again.expect("answers"), None);
    assert_eq!(find(&secret.hash()).await, None);
    assert!(
        store.api_keys_in_use().await.expect("reads"),
        "nothing is open again"
    );
    let keys = store.api_keys().await.expect("lists");
    assert_eq!((keys.len(), keys[0].revoked), (1, Some(NOW)));
}

async fn an_expired_key_is_not_known_while_its_webhooks_go_on(fixture: &Fixture) {
    // The database judges by its own clock: these are the years 2001 and 2100.
    const PAST: Timestamp = Timestamp::from_unix_seconds(1_000_000_000);
    const FUTURE: Timestamp = Timestamp::from_unix_seconds(4_102_444_800);
    let store = &fixture.store;
    let key = async |number: u8, expires: Timestamp| {
        let secret = ApiKeySecret::from_random([number; 32]);
        let new = NewApiKey {
            id: ApiKeyId::from_random([number; 8]),
            name: number.to_string(),
            hash: secret.hash(),
            created: NOW,
            expires: Some(expires),
            scopes: Scopes::ALL,
        };
        let created = store.create_api_key(&new).await.expect("created");
        assert_eq!(created.expires, Some(expires));
        let found = store.api_key_by_hash(&secret.hash()).await.expect("reads");
        (created.id, found)
    };
    let (later, found) = key(1, FUTURE).await;
    assert_eq!(found.map(|found| found.id), Some(later));
    let (expired, found) = key(2, PAST).await;
    assert_eq!(found, None);
    let mut new = webhook(1);
    new.owner = Access::Key(expired.clone());
    let webhook = store.create_webhook(&new, 1).await.expect("created");
    assert_eq!(webhook.api_key, Some(expired));
    let active = store.active_webhooks().await.expect("reads");
    assert_eq!(active.webhooks.len(), 1);
    let keys = store.api_keys().await.expect("lists");
    assert_eq!(keys[1].expires, Some(PAST));
}

async fn a_key_is_found_with_the_scopes_that_it_was_made_with(fixture: &Fixture) {
    let store = &fixture.store;
    let given = [
        Scopes::ALL,
        Scopes::only([Scope::WebhooksRead]),
        Scopes::only(Scope::ALL),
        Scopes::only([]),
    ];
    for (number, scopes) in (1..).zip(&given) {
        let secret = ApiKeySecret::from_random([number; 32]);
        let new = NewApiKey {
            id: ApiKeyId::from_random([number; 8]),
            name: number.to_string(),
            hash: secret.hash(),
            created: NOW,
            expires: None,
            scopes: scopes.clone(),
        };
        let created = store.create_api_key(&new).await.expect("created");
        assert_eq!(&created.scopes, scopes);
        let found = store.api_key_by_hash(&secret.hash()).await.expect("reads");
        let found = found.map(|found| (found.id, found.scopes));
        assert_eq!(found, Some((created.id, scopes.clone())));
    }
    let listed = store.api_keys().await.expect("lists").into_iter();
    assert!(listed.map(|key| key.scopes).eq(given));
}

async fn a_webhook_exists_for_its_key_alone(fixture: &Fixture) {
    let store = &fixture.store;
    let (first, _) = with_key(store, 1, "one").await;
    let (second, _) = with_key(store, 2, "two").await;
    let (first, second) = (Access::Key(first), Access::Key(second));
    let mut new = webhook(1);
    new.owner = first.clone();
    let id = store.create_webhook(&new, 1).await.expect("created").id;
    let mut more = webhook(2);
    more.owner = first.clone();
    assert!(matches!(
        store.create_webhook(&more, 1).await,
        Err(StoreError::TooManyWebhooks { limit: 1 })
    ));
    more.owner = second.clone();
    store
        .create_webhook(&more, 1)
        .await
        .expect("the limit is each key's own");

    let read = store.webhook(&first, &id).await.expect("reads");
    assert_eq!(read.expect("exists").api_key.as_ref(), first.api_key());
    assert_eq!(store.webhook(&second, &id).await.expect("reads"), None);
    let page = store.list_webhooks(&second, None, 9).await;
    assert_eq!(page.expect("lists").webhooks.len(), 1);
    let update = store
        .update_webhook(&second, &id, &definition(), None)
        .await;
    assert_eq!(update.expect("answers"), None);
    let messages = store.messages_after(&second, &id, 0, 9).await;
    assert_eq!(messages.expect("reads"), None);
    assert!(!store.delete_webhook(&second, &id).await.expect("answers"));
    assert!(store.delete_webhook(&first, &id).await.expect("deletes"));
}

async fn webhooks_of_a_revoked_key_stop_and_can_be_adopted(fixture: &Fixture) {
    let store = &fixture.store;
    let (old, _) = with_key(store, 1, "old").await;
    let (new_key, _) = with_key(store, 2, "new").await;
    let mut new = webhook(1);
    new.owner = Access::Key(old.clone());
    let id = store.create_webhook(&new, 9).await.expect("created").id;
    let key = store.revoke_api_key("old", NOW).await.expect("revokes");
    assert_eq!(key.expect("was there").webhooks, 1);
    assert_eq!(
        store.active_webhooks().await.expect("reads").webhooks.len(),
        0
    );
    let adopted = store
        .adopt_webhooks(&Access::Key(old.clone()), &new_key)
        .await;
    assert_eq!(adopted.expect("moves"), 1);
    let read = store.webhook(&Access::Key(new_key), &id).await;
    let read = read.expect("reads").expect("exists");
    assert!(!read.definition.active && read.disabled_reason.is_some());
    let to_a_revoked_key = store.adopt_webhooks(&Access::All, &old).await;
    assert!(matches!(
        to_a_revoked_key,
        Err(StoreError::NoSuchApiKey { .. })
    ));
}

async fn a_caller_whose_key_was_revoked_meanwhile_writes_nothing_more(fixture: &Fixture) {
    let store = &fixture.store;
    let (key, _) = with_key(store, 1, "one").await;
    let created = store.create_webhook(&webhook_of(1, &key), 9).await;
    let id = created.expect("created").id;
    let revoked = store.revoke_api_key("one", NOW).await.expect("revokes");
    assert!(revoked.is_some());
    let access = Access::Key(key.clone());
    let refused = [
        store.create_webhook(&webhook_of(2, &key), 9).await.err(),
        store
            .update_webhook(&access, &id, &definition(), None)
            .await
            .err(),
        store.delete_webhook(&access, &id).await.err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(StoreError::NoSuchApiKey { .. })));
    }
    let read = store.webhook(&Access::All, &id).await.expect("reads");
    assert!(!read.expect("exists").definition.active);
}

/// The quotas of the key that has some.
const QUOTAS: Quotas = Quotas {
    webhooks: Some(2),
    addresses: Some(7),
    stored_mib: None,
    messages_per_second: Some(30),
    delivery_slots: Some(9),
};

/// A webhook of a key, which watches three addresses.
fn webhook_of(number: u8, owner: &ApiKeyId) -> NewWebhook {
    let mut new = webhook(number);
    new.owner = Access::Key(owner.clone());
    new
}

async fn a_key_is_kept_to_its_quotas_and_others_are_not(fixture: &Fixture) {
    let store = &fixture.store;
    let (limited, _) = with_key(store, 1, "limited").await;
    let (free, _) = with_key(store, 2, "free").await;
    assert!(store.set_quotas("limited", QUOTAS).await.expect("sets"));
    assert!(!store.set_quotas("missing", QUOTAS).await.expect("answers"));
    let first = store.create_webhook(&webhook_of(1, &limited), 100).await;
    let first = first.expect("created").id;
    let second = store.create_webhook(&webhook_of(2, &limited), 100).await;
    second.expect("created");
    let third = store.create_webhook(&webhook_of(3, &limited), 100).await;
    assert!(matches!(
        third,
        Err(StoreError::TooManyWebhooks { limit: 2 })
    ));
    addresses_are_kept_to_the_quota(store, &Access::Key(limited.clone()), &first).await;

    for number in 3..=6 {
        let created = store.create_webhook(&webhook_of(number, &free), 4).await;
        created.expect("created");
    }
    let past = store.create_webhook(&webhook_of(7, &free), 4).await;
    assert!(matches!(
        past,
        Err(StoreError::TooManyWebhooks { limit: 4 })
    ));
    let lifted = store.set_quotas("limited", Quotas::default()).await;
    assert!(lifted.expect("sets"));
    let more = store.create_webhook(&webhook_of(8, &limited), 100).await;
    more.expect("created");
}

/// Two webhooks watch six addresses: one more fits, and what does not changes nothing.
async fn addresses_are_kept_to_the_quota(store: &Store, access: &Access, first: &WebhookId) {
    let usage = store.usage(access, NOW).await.expect("reads");
    assert_eq!(
        (usage.webhooks, usage.addresses, usage.quotas),
        (2, 6, QUOTAS)
    );
    let watch = async |numbers: &[u8]| {
        let add = Filters {
            accounts: numbers.iter().map(|number| address(*number)).collect(),
            programs: Vec::new(),
            ..Filters::default()
        };
        let edit = FilterEdit {
            add,
            remove: Filters::default(),
        };
        let limits = FilterLimits {
            accounts: 100,
            programs: 100,
            token_owners: 100,
        };
        store.edit_filters(access, first, &edit, limits, None).await
    };
    let past = watch(&[10, 11]).await;
    assert!(matches!(
        past,
        Err(StoreError::AddressQuota { count: 8, limit: 7 })
    ));
    watch(&[10]).await.expect("fits");
    let mut wider = definition();
    wider.filters.accounts.extend([address(10), address(11)]);
    let past = store.update_webhook(access, first, &wider, None).await;
    assert!(matches!(past, Err(StoreError::AddressQuota { .. })));
    let usage = store.usage(access, NOW).await.expect("reads");
    assert_eq!(usage.addresses, 7, "what was refused is not there");
}

//! Quotas of what is sent and kept for an API key, and the rate of a webhook, for all processes together.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use sluice_store::{
    Access, ApiKeyId, BodyTemplate, DeliveryOptions, DeliveryOrder, Held, Holder, LeaseLimits,
    LeaseRequest, LeasedDelivery, Load, OperationKind, Quotas, Store, StoreError, TenantShares,
    Timestamp, UsedUpQuota, WebhookId, WebhookSet,
};

use crate::{fixture::*, lease_on_insert::insert_leased, on_both};

on_both!(
    a_key_gets_so_many_messages_a_second_of_all_processes_and_the_others_wait,
    a_key_has_so_many_deliveries_leased_by_all_processes,
    a_webhook_with_a_long_queue_leaves_turns_to_the_others_of_its_key,
    a_place_that_a_webhook_frees_is_free_for_the_others_of_its_key,
    places_that_something_waits_for_are_told_as_used_up,
    of_a_limited_key_nothing_is_leased_on_insert,
    turns_of_a_webhook_are_shared_by_all_processes,
    a_lane_takes_one_turn,
    webhooks_with_something_due_have_even_parts_of_what_their_owner_may_hold,
    of_named_webhooks_as_much_is_leased_as_if_all_were_looked_at,
    what_is_kept_at_its_quota_is_told_and_refused,
    while_a_rate_holds_messages_back_no_more_are_put_on_the_way,
);

/// A key with these quotas and a webhook that is owed messages 1 to `count`.
async fn tenant(store: &Store, number: u8, count: u8, quotas: Quotas) -> (ApiKeyId, WebhookId) {
    let name = format!("tenant {number}");
    let (key, _) = with_key(store, number, &name).await;
    assert!(store.set_quotas(&name, quotas).await.expect("sets"));
    let id = another_of(store, &key, number, count).await;
    (key, id)
}

/// The webhook `number` of a key, that is owed messages 1 to `count`.
async fn another_of(store: &Store, key: &ApiKeyId, number: u8, count: u8) -> WebhookId {
    let mut new = webhook(number);
    new.owner = Access::Key(key.clone());
    let id = store.create_webhook(&new, 100).await.expect("created").id;
    owe(store, &id, count).await;
    id
}

async fn owe(store: &Store, id: &WebhookId, count: u8) {
    let messages: Vec<_> = (1..=count).map(|number| message(id, number)).collect();
    store_messages(store, &messages).await;
}

/// How many of each webhook were leased.
fn of(leased: &[LeasedDelivery], id: &WebhookId) -> usize {
    let of_it = leased.iter().filter(|each| each.lease.webhook == *id);
    of_it.count()
}

fn at(millis: u64) -> Timestamp {
    NOW.after(Duration::from_millis(millis))
}

async fn a_key_gets_so_many_messages_a_second_of_all_processes_and_the_others_wait(
    fixture: &Fixture,
) {
    let (store, another) = (&fixture.store, &fixture.another().await);
    let quotas = Quotas {
        messages_per_second: Some(10),
        ..Quotas::default()
    };
    let (key, limited) = tenant(store, 1, 40, quotas).await;
    let (_, free) = tenant(store, 2, 30, Quotas::default()).await;
    let access = Access::Key(key);
    let usage = store.usage(&access, NOW).await.expect("reads");
    assert_eq!(
        (usage.messages_per_second, usage.throttled),
        (Some(0), false)
    );

    let leased = lease(store, NOW).await;
    assert_eq!((of(&leased, &limited), of(&leased, &free)), (10, 30));
    assert_eq!(lease(another, NOW).await.len(), 0, "the second is used up");
    let usage = store.usage(&access, NOW).await.expect("reads");
    assert_eq!(
        (usage.messages_per_second, usage.throttled),
        (Some(10), true)
    );
    assert_eq!(lease(another, at(500)).await.len(), 5);
    assert_eq!(lease(store, at(500)).await.len(), 0);
    assert_eq!(
        lease(store, at(5000)).await.len(),
        10,
        "a rest saves a second up"
    );
    let rest = [lease(another, at(6000)).await, lease(store, at(7000)).await];
    assert_eq!(rest.map(|leased| leased.len()), [10, 5], "nothing was lost");
    let usage = store.usage(&access, at(30_000)).await.expect("reads");
    assert_eq!(
        (usage.messages_per_second, usage.throttled),
        (Some(0), false)
    );
}

async fn a_key_has_so_many_deliveries_leased_by_all_processes(fixture: &Fixture) {
    let (store, another) = (&fixture.store, &fixture.another().await);
    let quotas = Quotas {
        delivery_slots: Some(4),
        ..Quotas::default()
    };
    let (key, first) = tenant(store, 1, 9, quotas).await;
    let second = another_of(store, &key, 2, 9).await;
    let (_, free) = tenant(store, 3, 9, Quotas::default()).await;

    let leased = lease(store, NOW).await;
    assert_eq!(of(&leased, &free), 9);
    let mut parts = [of(&leased, &first), of(&leased, &second)];
    parts.sort_unstable();
    assert_eq!(parts, [1, 2], "half, so that the other has some");
    let more = lease(another, NOW).await;
    let all = of(&leased, &first) + of(&leased, &second) + more.len();
    assert!(all <= 4, "{all}");
    let usage = store.usage(&Access::Key(key), NOW).await.expect("reads");
    assert_eq!(usage.delivery_slots, u32::try_from(all).expect("few"));
    accept(store, &leased).await;
    assert!(
        !lease(another, NOW).await.is_empty(),
        "places are free again"
    );
}

/// Draws of one of two after which the other has had its turn, all but once in a million times.
const DRAWS: u64 = 20;

async fn a_webhook_with_a_long_queue_leaves_turns_to_the_others_of_its_key(fixture: &Fixture) {
    let store = &fixture.store;
    let quotas = Quotas {
        messages_per_second: Some(10),
        ..Quotas::default()
    };
    let (key, flooded) = tenant(store, 1, 60, quotas).await;
    let quiet = another_of(store, &key, 2, 2).await;
    let later = NOW.after(Duration::from_secs(3600));
    let leased = lease(store, later).await;
    assert_eq!(of(&leased, &quiet), 2);
    assert!(of(&leased, &flooded) >= 5);
    // One turn at a time.
    store_messages(store, &[message(&quiet, 3)]).await;
    let mut looks = 0;
    while of(
        &lease(store, later.after(Duration::from_millis(100 * looks))).await,
        &quiet,
    ) == 0
    {
        looks += 1;
        assert!(looks < DRAWS, "it never has a turn");
    }
}

async fn a_place_that_a_webhook_frees_is_free_for_the_others_of_its_key(fixture: &Fixture) {
    let store = &fixture.store;
    let quotas = Quotas {
        delivery_slots: Some(1),
        ..Quotas::default()
    };
    let (key, busy) = tenant(store, 1, 60, quotas).await;
    let mut held = lease(store, NOW).await;
    assert_eq!(of(&held, &busy), 1);
    let new = another_of(store, &key, 2, 1).await;
    let named = WebhookSet::from_iter([&held[0].lease]);
    for _ in 0..DRAWS {
        accept(store, &held).await;
        held = lease_of(store, &named, &request_within_shares(&Held::default(), 0)).await;
        assert_eq!(held.len(), 1, "one place");
        if of(&held, &new) == 1 {
            return;
        }
    }
    panic!("the new one never has a place");
}

async fn places_that_something_waits_for_are_told_as_used_up(fixture: &Fixture) {
    let store = &fixture.store;
    let quotas = Quotas {
        delivery_slots: Some(4),
        ..Quotas::default()
    };
    let (_, id) = tenant(store, 1, 2, quotas).await;
    let kinds = BTreeSet::from([OperationKind::Quota]);
    let set = store.set_operations(&Access::All, &id, &kinds).await;
    set.expect("sets").expect("exists");
    let used_up = async |now| store.used_up_quotas(now, false).await.expect("reads");
    assert_eq!(used_up(NOW).await, [], "they wait, and have places");
    let leased = lease(store, NOW).await;
    assert_eq!(leased.len(), 2);
    assert_eq!(used_up(NOW).await, [], "nothing waits");
    store_messages(store, &[message(&id, 3)]).await;
    assert_eq!(lease(store, NOW).await.len(), 0, "the rest is of others");
    let told = UsedUpQuota {
        webhook: id.clone(),
        quota: "deliverySlots",
        used: 2,
        limit: 4,
    };
    assert_eq!(used_up(NOW).await, [told]);
    accept(store, &leased[..1]).await;
    assert_eq!(used_up(NOW).await, [], "a place is free for it");
}

async fn of_a_limited_key_nothing_is_leased_on_insert(fixture: &Fixture) {
    let store = &fixture.store;
    let quotas = Quotas {
        messages_per_second: Some(10),
        ..Quotas::default()
    };
    let (_, limited) = tenant(store, 1, 0, quotas).await;
    let (_, free) = tenant(store, 2, 0, Quotas::default()).await;
    let messages = [message(&limited, 1), message(&free, 1)];
    let (_, leased) = insert_leased(store, &messages, NOW, PLENTY).await;
    assert_eq!((of(&leased, &limited), of(&leased, &free)), (0, 1));
    assert_eq!(of(&lease(store, NOW).await, &limited), 1);
}

/// Webhook 1, whose owner asks for so many attempts a second, in this order.
async fn paced(store: &Store, per_second: u32, order: DeliveryOrder) -> WebhookId {
    let mut new = webhook(1);
    new.definition.order = order;
    new.definition.delivery = DeliveryOptions {
        max_per_second: Some(per_second),
        ..DeliveryOptions::default()
    };
    store.create_webhook(&new, 100).await.expect("created").id
}

fn turns(leased: &[LeasedDelivery]) -> Vec<Option<Timestamp>> {
    leased.iter().map(|each| each.turn).collect()
}

async fn turns_of_a_webhook_are_shared_by_all_processes(fixture: &Fixture) {
    let (store, another) = (&fixture.store, &fixture.another().await);
    let id = paced(store, 2, DeliveryOrder::None).await;
    owe(store, &id, 9).await;
    let first = lease(store, NOW).await;
    assert_eq!(turns(&first), [Some(NOW), Some(at(500))]);
    assert_eq!(lease(another, NOW).await.len(), 0);
    let second = lease(another, at(600)).await;
    assert_eq!(turns(&second), [Some(at(1000)), Some(at(1500))]);
    let third = lease(store, at(700)).await;
    assert_eq!(turns(&third), []);
    let rested = lease(store, at(60_000)).await;
    assert_eq!(turns(&rested), [Some(at(60_000)), Some(at(60_500))]);
}

async fn a_lane_takes_one_turn(fixture: &Fixture) {
    let store = &fixture.store;
    let id = paced(store, 3, DeliveryOrder::Strict).await;
    owe(store, &id, 5).await;
    let first = lease(store, NOW).await;
    assert_eq!(turns(&first), [Some(NOW)], "the others wait for it");
    accept(store, &first).await;
    // The next one is due when the attempt has ended.
    let next = lease(store, at(20)).await;
    let turn = next.first().and_then(|next| next.turn);
    assert_eq!(turn, Some(at(333)));
}

async fn what_is_kept_at_its_quota_is_told_and_refused(fixture: &Fixture) {
    let store = &fixture.store;
    let quotas = Quotas {
        stored_mib: Some(1),
        messages_per_second: Some(1),
        ..Quotas::default()
    };
    let (key, id) = tenant(store, 1, 0, quotas).await;
    let kinds = BTreeSet::from([OperationKind::Quota]);
    let set = store.set_operations(&Access::All, &id, &kinds).await;
    set.expect("sets").expect("exists");
    let access = Access::Key(key);
    store.check_stored(&access).await.expect("has room");
    store.check_stored(&Access::All).await.expect("no limit");
    let mut large = message(&id, 1);
    let rest = format!(",\"data\":\"{}\"}}", "x".repeat(1 << 20));
    large.body = BodyTemplate::new("{\"sequence\":".to_owned(), rest.into());
    store_messages(store, &[large]).await;
    let refused = store.check_stored(&access).await;
    let Err(StoreError::StoredQuota { bytes, limit }) = refused else {
        panic!("{refused:?}")
    };
    assert!(bytes > limit && limit == 1 << 20, "{bytes}");
    let refused = store.check_messages(&access, NOW).await;
    assert!(
        matches!(refused, Err(StoreError::StoredQuota { .. })),
        "{refused:?}"
    );
    let told = UsedUpQuota {
        webhook: id.clone(),
        quota: "storedBytes",
        used: bytes,
        limit,
    };
    let used_up = async |with_stored| {
        let used_up = store.used_up_quotas(NOW, with_stored).await;
        used_up.expect("reads")
    };
    assert_eq!(used_up(true).await, [told]);
    assert_eq!(used_up(false).await, []);
    assert_eq!(lease(store, NOW).await.len(), 1);
    let told = UsedUpQuota {
        webhook: id,
        quota: "messagesPerSecond",
        used: 1,
        limit: 1,
    };
    assert_eq!(used_up(false).await, [told]);
}

async fn while_a_rate_holds_messages_back_no_more_are_put_on_the_way(fixture: &Fixture) {
    let (store, another) = (&fixture.store, &fixture.another().await);
    let quotas = Quotas {
        messages_per_second: Some(2),
        ..Quotas::default()
    };
    let (key, _) = tenant(store, 1, 3, quotas).await;
    let (other, _) = tenant(store, 2, 1, quotas).await;
    let access = Access::Key(key);
    let wait = async |now| match another.check_messages(&access, now).await {
        Ok(()) => None,
        Err(StoreError::MessageRate { limit: 2, wait }) => Some(wait.as_secs()),
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(wait(NOW).await, None, "nothing was sent yet");
    assert_eq!(
        lease(store, NOW).await.len(),
        3,
        "two of it, one of another"
    );
    assert_eq!(wait(NOW).await, Some(1), "one waits");
    assert_eq!(wait(at(3_250)).await, Some(1));
    store.check_stored(&access).await.expect("has room");
    let others = [Access::Key(other), Access::All];
    for access in others {
        let free = store.check_messages(&access, NOW).await;
        free.expect("holds nothing back");
    }
    assert_eq!(wait(at(10_000)).await, None, "the rate is long forgotten");
    assert_eq!(lease(store, at(5_000)).await.len(), 1, "nothing was lost");
    assert_eq!(wait(at(5_001)).await, None, "nothing waits");
    let lifted = store.set_quotas("tenant 1", Quotas::default()).await;
    assert!(lifted.expect("sets"));
    assert_eq!(wait(at(3_250)).await, None);
}

/// Webhooks of one owner, and what a process may hold, of which he may hold half.
const WEBHOOKS: u8 = 32;
const FREE: u32 = 512;

/// Owes each of them more than its even part.
async fn owe_many_webhooks(store: &Store) {
    let mut messages = Vec::new();
    for number in 1..=WEBHOOKS {
        let id = with_webhook(store, number).await;
        messages.extend((1..=16).map(|number| message(&id, number)));
    }
    store_messages(store, &messages).await;
}

/// A request of a process that holds this, so many deliveries together.
fn request_within_shares(held: &Held, held_deliveries: u32) -> LeaseRequest {
    let free = Load {
        deliveries: FREE - held_deliveries,
        bytes: u64::MAX,
    };
    LeaseRequest {
        now: NOW,
        until: NOW.after(LEASE),
        token: token(),
        limits: LeaseLimits {
            total: FREE,
            quota: FREE,
            ..PLENTY
        },
        shares: TenantShares::new(free, Arc::new(held.clone())),
    }
}

async fn webhooks_with_something_due_have_even_parts_of_what_their_owner_may_hold(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    owe_many_webhooks(store).await;
    let mut held = Held::default();
    let lease = async |held: &Held, held_deliveries: u32| {
        let request = request_within_shares(held, held_deliveries);
        store.lease_due(&request).await.expect("leases")
    };
    let leased = lease(&held, 0).await;
    let mut of_webhooks: BTreeMap<_, u32> = BTreeMap::new();
    for each in &leased {
        held.add(each.holder(), Load::of_one(1));
        *of_webhooks.entry(each.lease.webhook.as_str()).or_default() += 1;
    }
    assert_eq!(of_webhooks.len(), usize::from(WEBHOOKS), "{of_webhooks:?}");
    let most = FREE / 2 / u32::from(WEBHOOKS);
    assert_eq!(of_webhooks.values().max(), Some(&most), "{of_webhooks:?}");
    // Of the webhooks with their part nothing more is leased, though something is left.
    let count = u32::try_from(leased.len()).expect("few");
    assert!(count < FREE / 2, "{count}");
    let before = of_webhooks.clone();
    for each in lease(&held, count).await {
        let id = each.lease.webhook.as_str().to_owned();
        let had = before.get(id.as_str()).copied().unwrap_or(0);
        assert!(had < most, "{id} had {had}");
    }
}

async fn of_named_webhooks_as_much_is_leased_as_if_all_were_looked_at(fixture: &Fixture) {
    let store = &fixture.store;
    owe_many_webhooks(store).await;
    let one_of_each = LeaseLimits { quota: 1, ..PLENTY };
    let first = lease_some(store, NOW, one_of_each).await;
    assert_eq!(first.len(), usize::from(WEBHOOKS));
    let mut held = Held::default();
    for each in &first {
        held.add(each.holder(), Load::of_one(1));
    }
    let request = request_within_shares(&held, u32::from(WEBHOOKS));
    let named = WebhookSet::from_iter([&first[0].lease]);
    let leased = lease_of(store, &named, &request).await;
    let of_named = |each: &&LeasedDelivery| each.lease.webhook == first[0].lease.webhook;
    assert_eq!(leased.iter().filter(of_named).count(), leased.len());
    let even = FREE / 2 / u32::from(WEBHOOKS);
    assert_eq!(leased.len() + 1, usize::try_from(even).expect("few"));
    let none = WebhookSet::default();
    let leased = lease_of(store, &none, &request).await;
    assert!(leased.is_empty());
}

async fn lease_of(
    store: &Store,
    webhooks: &WebhookSet,
    request: &LeaseRequest,
) -> Vec<LeasedDelivery> {
    let leases = store.lease_due_pending(Some(webhooks), request).await;
    let leases = leases.expect("leases");
    let none = |(_, load): &(Holder, Load)| *load == Load::default();
    assert!(
        !leases.loads().iter().any(none),
        "a webhook of which none is leased"
    );
    let load = leases.load();
    let deliveries = leases.deliveries().await.expect("loads");
    let loads = deliveries
        .iter()
        .map(|each| Load::of_one(each.body.len() as u64));
    assert_eq!(load, loads.sum(), "what it says beforehand");
    deliveries
}

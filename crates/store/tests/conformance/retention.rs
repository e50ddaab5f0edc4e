//! Retention: removal of old messages and of what belonged to them.

use std::time::Duration;

use sluice_store::{
    Access, BodyTemplate, Outcome, Quotas, Removed, Retention, Timestamp, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    pruning_takes_old_finished_messages_only,
    a_bounded_size_takes_finished_messages_and_says_when_that_is_not_enough,
    room_is_made_of_the_largest_tenant_s_messages_and_not_of_another_s,
    who_keeps_more_than_most_loses_nothing_for_one_whose_receiver_is_dead,
    an_owner_is_kept_to_its_quota_and_no_other_pays_for_it,
    undelivered_messages_go_only_for_their_age_and_are_reported,
);

const fn keep(finished_before: Timestamp) -> Retention {
    Retention {
        now: NOW,
        finished_before,
        undelivered_before: None,
        max_bytes: None,
    }
}

async fn pruning_takes_old_finished_messages_only(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 2).await;
    let leased = lease(store, NOW).await;
    accept(store, &leased[..1]).await;
    let prune = async |before| store.prune(&keep(before)).await.expect("prunes").finished;
    assert_eq!(prune(NOW).await, 0);
    assert_eq!(prune(NOW.after(LEASE)).await, 1);
    let left = deliveries(store, &id).await;
    assert_eq!(
        (left.len(), left[0].sequence),
        (1, 2),
        "numbers are not given again"
    );
    store_messages(store, &[message(&id, 3)]).await;
    assert_eq!(deliveries(store, &id).await[1].sequence, 3);
    let page = store
        .messages_after(&sluice_store::Access::All, &id, 0, 9)
        .await;
    assert_eq!(page.expect("reads").expect("exists").oldest_kept, Some(2));
}

async fn a_bounded_size_takes_finished_messages_and_says_when_that_is_not_enough(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let id = owing(store, 3).await;
    let leased = lease(store, NOW).await;
    accept(store, &leased[..2]).await;
    let before = store.queue_stats().await.expect("counts").bytes;
    let roomy = Retention {
        max_bytes: Some(before),
        ..keep(NOW)
    };
    assert_eq!(
        store.prune(&roomy).await.expect("prunes"),
        Removed::default()
    );
    let tight = Retention {
        max_bytes: Some(1),
        ..keep(NOW)
    };
    let removed = store.prune(&tight).await.expect("prunes");
    assert_eq!((removed.for_room, removed.too_large), (2, true));
    let left = deliveries(store, &id).await;
    assert_eq!((left.len(), left[0].sequence), (1, 3));
    let after = store.queue_stats().await.expect("counts").bytes;
    let body = leased[2].body.len();
    assert_eq!(after, u64::try_from(body).expect("small"));
}

async fn room_is_made_of_the_largest_tenant_s_messages_and_not_of_another_s(fixture: &Fixture) {
    let store = &fixture.store;
    let mut ids = Vec::new();
    for number in [1, 2] {
        let (key, _) = with_key(store, number, &number.to_string()).await;
        let mut new = webhook(number);
        new.owner = Access::Key(key);
        ids.push(store.create_webhook(&new, 100).await.expect("created").id);
    }
    let (small, large) = (&ids[0], &ids[1]);
    // The oldest finished ones are the small tenant's.
    store_messages(store, &[message(small, 1), message(small, 2)]).await;
    accept(store, &lease(store, NOW).await).await;
    let of_large: Vec<_> = (1..=20).map(|number| message(large, number)).collect();
    store_messages(store, &of_large).await;
    let leased = lease(store, NOW).await;
    assert_eq!(leased.len(), 20);
    accept(store, &leased[..10]).await;
    let kept = async |id| deliveries(store, id).await.len();

    let bytes = store.queue_stats().await.expect("counts").bytes;
    let tight = |bytes| Retention {
        max_bytes: Some(bytes),
        ..keep(NOW)
    };
    let removed = store.prune(&tight(bytes - 1)).await.expect("prunes");
    assert_eq!(
        (removed.for_room, removed.too_large),
        (1, false),
        "no more than there is no room for"
    );
    assert_eq!((kept(small).await, kept(large).await), (2, 19));

    // Half of this is more than the small one has. What is left of the large one's was never accepted.
    let removed = store.prune(&tight(bytes / 3)).await.expect("prunes");
    assert_eq!((removed.for_room, removed.too_large), (9, true));
    assert_eq!((kept(small).await, kept(large).await), (2, 10));
}

async fn who_keeps_more_than_most_loses_nothing_for_one_whose_receiver_is_dead(fixture: &Fixture) {
    let store = &fixture.store;
    let mut ids = Vec::new();
    for number in 1..=8 {
        let (key, _) = with_key(store, number, &number.to_string()).await;
        let mut new = webhook(number);
        new.owner = Access::Key(key);
        ids.push(store.create_webhook(&new, 100).await.expect("created").id);
    }
    let (dead, busy) = (&ids[0], &ids[1]);
    // Busy has four times what is an equal part of the room, and far less than what it leaves to the dead one.
    let of = |id: &WebhookId, count| {
        (1..=count)
            .map(|number| message(id, number))
            .collect::<Vec<_>>()
    };
    let mut finished = of(busy, 20);
    finished.extend(ids[2..].iter().flat_map(|id| of(id, 1)));
    store_messages(store, &finished).await;
    accept(store, &lease(store, NOW).await).await;
    let before = store.queue_stats().await.expect("counts").bytes;
    store_messages(store, &of(dead, 100)).await;

    let tight = Retention {
        max_bytes: Some(before * 2),
        ..keep(NOW)
    };
    let removed = store.prune(&tight).await.expect("prunes");
    assert_eq!((removed.for_room, removed.too_large), (0, true));
    assert_eq!(deliveries(store, busy).await.len(), 20);
}

async fn an_owner_is_kept_to_its_quota_and_no_other_pays_for_it(fixture: &Fixture) {
    const BODY: usize = 300_000;
    let store = &fixture.store;
    let mut ids = Vec::new();
    for (number, name) in [(1, "greedy"), (2, "other")] {
        let (key, _) = with_key(store, number, name).await;
        let mut new = webhook(number);
        new.owner = Access::Key(key);
        ids.push(store.create_webhook(&new, 100).await.expect("created").id);
    }
    let (greedy, other) = (&ids[0], &ids[1]);
    let large = |id, number| {
        let mut large = message(id, number);
        let rest = format!(",\"data\":\"{}\"}}", "x".repeat(BODY));
        large.body = BodyTemplate::new("{\"sequence\":".to_owned(), rest.into());
        large
    };
    store_messages(store, &[large(greedy, 1), large(greedy, 2)]).await;
    accept(store, &lease(store, NOW).await).await;
    let waiting: Vec<_> = (3..=8).map(|number| large(greedy, number)).collect();
    store_messages(store, &waiting).await;
    let of_other: Vec<_> = (1..=8).map(|number| large(other, number)).collect();
    store_messages(store, &of_other).await;
    let quotas = Quotas {
        stored_mib: Some(1),
        ..Quotas::default()
    };
    assert!(store.set_quotas("greedy", quotas).await.expect("sets"));

    let removed = store.prune(&keep(NOW)).await.expect("prunes");
    assert_eq!(removed.for_quotas, 2 + 3, "delivered ones first");
    let kept: Vec<_> = deliveries(store, greedy).await;
    let kept: Vec<_> = kept.iter().map(|delivery| delivery.sequence).collect();
    assert_eq!(kept, [6, 7, 8]);
    assert_eq!(deliveries(store, other).await.len(), 8);
    let again = store.prune(&keep(NOW)).await.expect("prunes");
    assert_eq!(again, Removed::default());
    let access = Access::Key(store.api_keys().await.expect("reads")[0].id.clone());
    let usage = store.usage(&access, NOW).await.expect("reads");
    assert!((3 * 300_000..1 << 20).contains(&usage.stored_bytes));
    assert_eq!(usage.quotas, quotas);
}

async fn undelivered_messages_go_only_for_their_age_and_are_reported(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 3).await;
    let leased = lease(store, NOW).await;
    let at = NOW.after(Duration::from_secs(3600));
    record(store, &leased[0], 500, Outcome::Retry { at }).await;
    let old = Retention {
        undelivered_before: Some(NOW.after(Duration::from_secs(1))),
        ..keep(NOW)
    };
    let removed = store.prune(&old).await.expect("prunes");
    assert_eq!(
        removed.undelivered,
        [(id.clone(), 1)],
        "those under lease stay"
    );
    assert_eq!(deliveries(store, &id).await.len(), 2);
    accept(store, &leased[1..]).await;
}

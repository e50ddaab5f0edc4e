//! Operational webhooks: who is told what becomes of which webhooks.

use std::collections::BTreeSet;

use sluice_store::{
    Access, ApiKeyId, Breaker, Commit, Commitment, EndpointState, EventKinds, FilterEdit,
    FilterLimits, Filters, OperationKind, Outcome, Quotas, Store, StoreError, UsedUpQuota,
    WebhookDefinition, WebhookId,
};

use crate::{fixture::*, on_both};

on_both!(
    a_webhook_is_told_of_its_owners_others_and_never_of_itself,
    trouble_is_shown_while_it_lasts,
    of_endpoints_only_those_are_in_trouble_to_which_nothing_is_sent,
    a_quota_that_is_used_up_is_shown_to_whoever_asked,
    who_was_switched_off_is_told_of_that_before_what_became_of_others,
    a_webhook_may_be_told_of_operations_and_watch_nothing,
);

async fn owned(store: &Store, number: u8, owner: Option<&ApiKeyId>) -> WebhookId {
    let mut new = webhook(number);
    if let Some(owner) = owner {
        new.owner = Access::Key(owner.clone());
    }
    store.create_webhook(&new, 100).await.expect("created").id
}

async fn tell(store: &Store, id: &WebhookId, kinds: &[OperationKind]) {
    let kinds: BTreeSet<_> = kinds.iter().copied().collect();
    let set = store.set_operations(&Access::All, id, &kinds).await;
    set.expect("sets").expect("exists");
    let read = store.operations(&Access::All, id).await;
    assert_eq!(read.expect("reads"), Some(kinds));
}

async fn a_webhook_is_told_of_its_owners_others_and_never_of_itself(fixture: &Fixture) {
    let store = &fixture.store;
    let (one, _) = with_key(store, 1, "one").await;
    let (other, _) = with_key(store, 2, "other").await;
    let told = owned(store, 1, Some(&one)).await;
    let subject = owned(store, 2, Some(&one)).await;
    owned(store, 3, Some(&other)).await;
    owned(store, 4, None).await;
    let pairs = async |kind| {
        let recipients = store.operation_recipients(kind).await.expect("reads");
        let recipients = recipients.into_iter();
        let pairs = recipients.map(|pair| (pair.webhook, pair.subject));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(pairs(OperationKind::Gap).await, []);
    tell(store, &told, &[OperationKind::Gap]).await;
    let pair = (told.clone(), subject.clone());
    assert_eq!(pairs(OperationKind::Gap).await, [pair]);
    assert_eq!(pairs(OperationKind::Quota).await, []);
    let kinds = BTreeSet::from([OperationKind::Gap]);
    let stranger = Access::Key(other);
    let strange = store.set_operations(&stranger, &told, &kinds).await;
    assert_eq!(strange.expect("asks"), None);
    tell(store, &told, &[]).await;
    assert_eq!(pairs(OperationKind::Gap).await, []);
}

async fn trouble_is_shown_while_it_lasts(fixture: &Fixture) {
    let store = &fixture.store;
    let told = owned(store, 1, None).await;
    let subject = owned(store, 2, None).await;
    tell(store, &told, &OperationKind::ALL).await;
    let troubled = async || store.troubled_webhooks().await.expect("reads");
    assert_eq!(troubled().await, []);
    store_messages(store, &[message(&subject, 1)]).await;
    let leased = lease(store, NOW).await;
    let gone = Outcome::Gone {
        reason: "answered 410".to_owned(),
        retry_at: NOW,
    };
    record(store, &leased[0], 410, gone).await;
    let revision = store.webhook_revision().await.expect("reads");
    let recorded = store.record_refusal(&subject, revision, "too many").await;
    assert!(recorded.expect("records"));
    let found = troubled().await;
    let [(recipient, kinds, webhook)] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((recipient, kinds.len()), (&told, 5));
    assert_eq!(webhook.id, subject);
    assert_eq!(webhook.disabled_reason.as_deref(), Some("answered 410"));
    assert_eq!(webhook.refused.as_deref(), Some("too many"));
    assert_eq!(webhook.breaker, Breaker::Closed);
    store
        .update_webhook(&Access::All, &subject, &definition(), None)
        .await
        .expect("updates")
        .expect("exists");
    assert_eq!(troubled().await, [], "it is on, and its filter is new");
}

async fn of_endpoints_only_those_are_in_trouble_to_which_nothing_is_sent(fixture: &Fixture) {
    let store = &fixture.store;
    let told = owned(store, 1, None).await;
    let subject = owned(store, 2, None).await;
    tell(store, &told, &[OperationKind::EndpointFailing]).await;
    for breaker in Breaker::ALL {
        let state = EndpointState {
            breaker,
            failing_since: Some(NOW),
            ..EndpointState::default()
        };
        let set = store.set_endpoint(&subject, &state).await;
        assert!(set.expect("sets"));
        let found = store.troubled_webhooks().await.expect("reads");
        let found = found.into_iter().map(|(_, _, webhook)| webhook);
        let found: Vec<_> = found
            .map(|webhook| (webhook.id, webhook.failing_since))
            .collect();
        let expected = [(subject.clone(), Some(NOW))];
        let count = usize::from(breaker == Breaker::Open);
        assert_eq!(found, expected[..count], "{breaker:?}");
    }
}

async fn a_quota_that_is_used_up_is_shown_to_whoever_asked(fixture: &Fixture) {
    let store = &fixture.store;
    let (key, _) = with_key(store, 1, "tenant").await;
    let told = owned(store, 1, Some(&key)).await;
    let quotas = Quotas {
        webhooks: Some(1),
        addresses: Some(100),
        ..Quotas::default()
    };
    assert!(store.set_quotas("tenant", quotas).await.expect("sets"));
    assert_eq!(store.used_up_quotas(NOW, true).await.expect("reads"), []);
    tell(store, &told, &[OperationKind::Quota]).await;
    let used_up = UsedUpQuota {
        webhook: told,
        quota: "webhooks",
        used: 1,
        limit: 1,
    };
    assert_eq!(
        store.used_up_quotas(NOW, true).await.expect("reads"),
        [used_up]
    );
}

async fn who_was_switched_off_is_told_of_that_before_what_became_of_others(fixture: &Fixture) {
    let store = &fixture.store;
    let (key, _) = with_key(store, 1, "tenant").await;
    let told = owned(store, 1, Some(&key)).await;
    let subject = owned(store, 2, Some(&key)).await;
    tell(store, &told, &OperationKind::ALL).await;
    let quotas = Quotas {
        webhooks: Some(2),
        ..Quotas::default()
    };
    assert!(store.set_quotas("tenant", quotas).await.expect("sets"));
    let revision = store.webhook_revision().await.expect("reads");
    let recorded = store.record_refusal(&subject, revision, "too many").await;
    assert!(recorded.expect("records"));
    let shown = async || {
        let troubled = store.troubled_webhooks().await.expect("reads");
        let used_up = store.used_up_quotas(NOW, false).await.expect("reads");
        (troubled.len(), used_up.len())
    };
    let reach = async |slot| {
        let commit = Commit::slot(Commitment::Confirmed, slot, &[], NOW);
        store.commit(&commit).await.expect("commits");
    };
    let switch = async |active| {
        let definition = WebhookDefinition {
            active,
            operations: OperationKind::ALL.into_iter().collect(),
            ..definition()
        };
        let updated = store.update_webhook(&Access::All, &told, &definition, None);
        updated.await.expect("updates").expect("exists");
    };
    reach(7).await;
    assert_eq!(shown().await, (1, 1));
    switch(false).await;
    reach(8).await;
    switch(true).await;
    assert_eq!(shown().await, (0, 0), "it was not told of its pause");
    for pause in store.ended_pauses().await.expect("reads") {
        store.forget_pause(&pause).await.expect("forgets");
    }
    assert_eq!(shown().await, (1, 1));
}

async fn a_webhook_may_be_told_of_operations_and_watch_nothing(fixture: &Fixture) {
    let store = &fixture.store;
    let told_alone = |kinds: &[OperationKind]| WebhookDefinition {
        events: EventKinds::default(),
        filters: Filters::default(),
        operations: kinds.iter().copied().collect(),
        ..definition()
    };
    let refused = |result| assert!(matches!(result, Err(StoreError::MatchesNothing)));
    let mut new = webhook(1);
    new.definition = told_alone(&[]);
    refused(store.create_webhook(&new, 100).await.map(drop));
    new.definition = told_alone(&[OperationKind::Quota]);
    new.definition.filters = definition().filters;
    refused(store.create_webhook(&new, 100).await.map(drop));

    new.definition = told_alone(&[OperationKind::Quota, OperationKind::Gap]);
    let created = store.create_webhook(&new, 100).await.expect("created");
    assert_eq!(created.definition, new.definition);
    let id = created.id;
    let active = store.active_webhooks().await.expect("reads").webhooks;
    assert_eq!(active.len(), 1);
    assert!(active[0].events.is_empty() && active[0].filters.count() == 0);
    let subject = owned(store, 2, None).await;
    let recipients = store.operation_recipients(OperationKind::Gap).await;
    let recipients = recipients.expect("reads");
    assert_eq!(recipients.len(), 1, "never of itself");
    assert_eq!(recipients[0].subject, subject);

    let none = BTreeSet::new();
    let none = store.set_operations(&Access::All, &id, &none).await;
    refused(none.map(drop));
    let edit = FilterEdit {
        add: definition().filters,
        ..FilterEdit::default()
    };
    let limits = FilterLimits {
        accounts: 9,
        programs: 9,
        token_owners: 9,
    };
    let edited = store.edit_filters(&Access::All, &id, &edit, limits, None);
    refused(edited.await.map(drop));
    let update = async |definition: &WebhookDefinition| {
        let updated = store.update_webhook(&Access::All, &id, definition, None);
        let updated = updated.await?;
        Ok(updated.expect("exists").definition)
    };
    refused(update(&told_alone(&[])).await.map(drop));
    for next in [definition(), told_alone(&[OperationKind::EndpointFailing])] {
        assert_eq!(update(&next).await.expect("updates"), next);
        let read = store.operations(&Access::All, &id).await.expect("reads");
        assert_eq!(read, Some(next.operations));
    }
}

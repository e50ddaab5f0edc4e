//! Active webhooks, revisions, and filters in force.

use sluice_store::{
    Access, AddressLimits, Commit, Commitment, Conditions, FilterChange, FilterEdit, FilterLimits,
    FilterState, Filters, Revision, StoreError, WebhookDefinition,
};

use crate::{fixture::*, on_both};

on_both!(
    the_revision_counts_what_changes_matching_and_nothing_else,
    conditions_are_matched_anew_when_they_change_and_kept_when_addresses_do,
    changes_name_what_changed_and_what_is_left,
    addresses_are_added_and_removed_once,
    an_edit_cannot_empty_or_overfill_a_filter,
    a_change_names_the_slots_from_which_it_was_requested_and_in_force,
    recording_the_same_filter_again_or_an_earlier_one_changes_nothing,
    a_refusal_is_kept_until_the_filter_changes_or_is_served,
    address_limits_are_those_that_were_found_last,
);

async fn the_revision_counts_what_changes_matching_and_nothing_else(fixture: &Fixture) {
    let store = &fixture.store;
    let revision = async || store.webhook_revision().await.expect("reads");
    assert_eq!(revision().await, Revision(0));
    let id = with_webhook(store, 1).await;
    assert_eq!(revision().await, Revision(1));
    let update = async |definition: WebhookDefinition| {
        store
            .update_webhook(&Access::All, &id, &definition, None)
            .await
            .expect("updates")
    };

    let mut changed = definition();
    changed.url = "https://example.com/elsewhere".to_owned();
    update(changed.clone()).await.expect("exists");
    assert_eq!(revision().await, Revision(1), "the URL is not matched");

    changed.active = false;
    update(changed.clone()).await.expect("exists");
    let active = store.active_webhooks().await.expect("reads");
    assert_eq!((active.revision, active.webhooks.len()), (Revision(2), 0));

    changed.active = true;
    changed.filters.programs.clear();
    changed.commitment = Commitment::Finalized;
    update(changed.clone()).await.expect("exists");
    let active = store.active_webhooks().await.expect("reads");
    assert_eq!(active.revision, Revision(3));
    assert_eq!(active.webhooks[0].filters, changed.filters);
    assert_eq!(active.webhooks[0].commitment, Commitment::Finalized);

    store
        .delete_webhook(&Access::All, &id)
        .await
        .expect("deletes");
    assert_eq!(revision().await, Revision(4));
    assert_eq!(update(changed.clone()).await, None);
}

async fn conditions_are_matched_anew_when_they_change_and_kept_when_addresses_do(
    fixture: &Fixture,
) {
    let store = &fixture.store;
    let mut new = webhook(1);
    new.definition.conditions.event_names = vec!["SwapEvent".to_owned()];
    let created = store.create_webhook(&new, 10).await.expect("created");
    assert_eq!(created.definition, new.definition);
    let mut changed = created.definition;
    changed.conditions = Conditions {
        data_size: Some(165),
        ..Conditions::default()
    };
    store
        .update_webhook(&Access::All, &created.id, &changed, None)
        .await
        .expect("updates");
    let active = store.active_webhooks().await.expect("reads");
    assert_eq!(active.revision, Revision(2));
    assert_eq!(active.webhooks[0].conditions, changed.conditions);
    assert_eq!(active.webhooks[0].filters, changed.filters);

    let edit = FilterEdit {
        add: Filters {
            accounts: vec![address(77)],
            programs: Vec::new(),
            ..Filters::default()
        },
        remove: Filters::default(),
    };
    let limits = FilterLimits {
        accounts: 100,
        programs: 100,
        token_owners: 100,
    };
    let edited = store
        .edit_filters(&Access::All, &created.id, &edit, limits, None)
        .await
        .expect("edits")
        .expect("is there");
    assert_eq!(edited.webhook.definition.conditions, changed.conditions);
}

async fn changes_name_what_changed_and_what_is_left(fixture: &Fixture) {
    let store = &fixture.store;
    let (first, second) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let all = store.active_changes(Revision(0)).await.expect("reads");
    assert_eq!((all.active.len(), all.changed.len()), (2, 2));
    let none = store.active_changes(all.revision).await.expect("reads");
    assert_eq!((none.active.len(), none.changed.len()), (2, 0));

    let mut changed = definition();
    changed.filters.accounts.pop();
    store
        .update_webhook(&Access::All, &second, &changed, None)
        .await
        .expect("updates");
    store
        .delete_webhook(&Access::All, &first)
        .await
        .expect("deletes");
    let changes = store.active_changes(all.revision).await.expect("reads");
    assert_eq!(changes.revision, Revision(4));
    assert_eq!(changes.active, [second]);
    assert_eq!(changes.changed.len(), 1);
    assert_eq!(changes.changed[0].filters, changed.filters);
    assert_eq!(changes.changed[0].filter_digest, changed.filters.digest());
}

const LIMITS: FilterLimits = FilterLimits {
    accounts: 4,
    programs: 2,
    token_owners: 2,
};

fn accounts(numbers: &[u8]) -> Filters {
    Filters {
        accounts: numbers.iter().copied().map(address).collect(),
        programs: Vec::new(),
        ..Filters::default()
    }
}

async fn addresses_are_added_and_removed_once(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let edit = FilterEdit {
        add: accounts(&[1, 9, 9]),
        remove: accounts(&[2, 7]),
    };
    let edited = store
        .edit_filters(&Access::All, &id, &edit, LIMITS, None)
        .await
        .expect("edits")
        .expect("exists");
    assert_eq!(edited.added, accounts(&[9]));
    assert_eq!(edited.removed, accounts(&[2]));
    let after = &edited.webhook;
    assert_eq!(after.definition.filters.accounts, [address(1), address(9)]);
    assert_eq!((after.version, after.matched_revision), (2, Revision(2)));
    assert_eq!(after.filter_digest, after.definition.filters.digest());

    let again = store
        .edit_filters(&Access::All, &id, &edit, LIMITS, Some(2))
        .await
        .expect("edits")
        .expect("exists");
    assert_eq!(
        (again.added, again.removed),
        (Filters::default(), Filters::default())
    );
    assert_eq!(again.webhook, edited.webhook, "nothing is written");

    let stale = store
        .edit_filters(&Access::All, &id, &edit, LIMITS, Some(1))
        .await;
    assert!(matches!(
        stale,
        Err(StoreError::VersionConflict { current: 2 })
    ));
}

async fn an_edit_cannot_empty_or_overfill_a_filter(fixture: &Fixture) {
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    let edit = async |edit: FilterEdit| {
        store
            .edit_filters(&Access::All, &id, &edit, LIMITS, None)
            .await
    };
    let too_many = edit(FilterEdit {
        add: accounts(&[11, 12, 13]),
        ..FilterEdit::default()
    })
    .await;
    assert!(matches!(
        too_many,
        Err(StoreError::TooManyAddresses {
            what: "accounts",
            count: 5,
            limit: 4
        })
    ));
    let empty = edit(FilterEdit {
        remove: definition().filters,
        ..FilterEdit::default()
    })
    .await;
    assert!(matches!(empty, Err(StoreError::MatchesNothing)));
    let read = store.webhook(&Access::All, &id).await.expect("reads");
    assert_eq!(
        read.expect("exists").definition,
        definition(),
        "a refused edit changes nothing"
    );
}

async fn a_change_names_the_slots_from_which_it_was_requested_and_in_force(fixture: &Fixture) {
    let store = &fixture.store;
    with_webhook(store, 1).await;
    let change = async |revision| {
        let change = store.filter_change(Revision(revision)).await;
        change.expect("reads")
    };
    let expected = |revision, requested_slot, in_force_slot| {
        Some(FilterChange {
            revision: Revision(revision),
            requested_slot,
            in_force_slot,
        })
    };
    assert_eq!(change(1).await, expected(1, None, None));
    store
        .commit(&Commit::slot(Commitment::Confirmed, 40, &[], NOW))
        .await
        .expect("commits");
    let second = with_webhook(store, 2).await;
    assert_eq!(change(2).await, expected(2, Some(41), None));
    let changes = store.filter_changes(Revision(1)).await.expect("reads");
    assert_eq!(changes.len(), 1);

    store
        .record_filter_state(FilterState {
            revision: Revision(2),
            in_force_slot: 41,
        })
        .await
        .expect("records");
    assert_eq!(change(2).await, expected(2, Some(41), Some(41)));
    assert_eq!(
        change(1).await,
        expected(1, None, Some(41)),
        "older ones too"
    );
    store
        .delete_webhook(&Access::All, &second)
        .await
        .expect("deletes");
    assert_eq!(change(3).await, expected(3, Some(41), None));
    assert_eq!(change(9).await, None);
}

async fn recording_the_same_filter_again_or_an_earlier_one_changes_nothing(fixture: &Fixture) {
    let store = &fixture.store;
    assert_eq!(store.filter_state().await.expect("reads"), None);
    let state = |revision, in_force_slot| FilterState {
        revision: Revision(revision),
        in_force_slot,
    };
    for (recorded, known) in [
        (state(1, 10), state(1, 10)),
        (state(1, 20), state(1, 10)),
        (state(2, 30), state(2, 30)),
        // Another process recorded a later one meanwhile.
        (state(1, 40), state(2, 30)),
    ] {
        store.record_filter_state(recorded).await.expect("records");
        assert_eq!(store.filter_state().await.expect("reads"), Some(known));
    }
}

async fn a_refusal_is_kept_until_the_filter_changes_or_is_served(fixture: &Fixture) {
    let store = &fixture.store;
    let (first, second) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
    let refused = async |id| {
        let webhook = store.webhook(&Access::All, id).await;
        webhook.expect("reads").expect("exists").refused
    };
    let refuse = async |id, revision| {
        let recorded = store.record_refusal(id, Revision(revision), "no").await;
        recorded.expect("records")
    };
    assert!(!refuse(&second, 1).await, "it was written later");
    assert_eq!(refused(&second).await, None);
    assert!(refuse(&first, 2).await && refuse(&second, 2).await);
    assert_eq!(refused(&second).await.as_deref(), Some("no"));

    let mut changed = definition();
    changed.url = "https://example.com/elsewhere".to_owned();
    for (accounts, expected) in [(2, Some("no")), (1, None)] {
        changed.filters.accounts.truncate(accounts);
        let updated = store.update_webhook(&Access::All, &first, &changed, None);
        let updated = updated.await.expect("updates").expect("exists");
        assert_eq!(updated.refused.as_deref(), expected);
    }

    let keep = [second.clone()];
    store.clear_refusals_but(&keep).await.expect("clears");
    assert!(refused(&second).await.is_some());
    store.clear_refusals_but(&[]).await.expect("clears");
    assert_eq!(refused(&second).await, None);
}

async fn address_limits_are_those_that_were_found_last(fixture: &Fixture) {
    let store = &fixture.store;
    let none = AddressLimits::default();
    assert_eq!(store.address_limits().await.expect("reads"), none);
    let some = AddressLimits {
        accounts: Some(320),
        mentioned: Some(0),
        closes_unseen: true,
        ..none
    };
    for limits in [some, none] {
        store.record_address_limits(limits).await.expect("writes");
        assert_eq!(store.address_limits().await.expect("reads"), limits);
    }
}

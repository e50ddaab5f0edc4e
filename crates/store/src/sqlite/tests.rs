//! Each promise of the store, on a real database file.

use std::{sync::Arc, time::Duration};

use solana_pubkey::Pubkey;
use tempfile::TempDir;

use crate::{
    Attempt, BodyTemplate, ClaimLimits, ClaimedDelivery, DeliveryState, EventKind, FilterState,
    Filters, MessageId, NewDelivery, NewWebhook, Outcome, Revision, Secret, Store, StoreError,
    Timestamp, WebhookDefinition, WebhookId,
};

const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);
const LEASE: Duration = Duration::from_secs(25);
const PLENTY: ClaimLimits = ClaimLimits {
    total: 100,
    per_webhook: 100,
};

struct Fixture {
    folder: TempDir,
    store: Store,
}

async fn fixture() -> Fixture {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = Store::open(&folder.path().join("new/sluice.db"))
        .await
        .expect("opens");
    Fixture { folder, store }
}

fn definition() -> WebhookDefinition {
    WebhookDefinition {
        url: "https://example.com/hook".to_owned(),
        events: EventKind::ALL.into_iter().collect(),
        filters: Filters {
            accounts: vec![
                Pubkey::new_from_array([1; 32]),
                Pubkey::new_from_array([2; 32]),
            ],
            programs: vec![Pubkey::new_from_array([3; 32])],
        },
        active: true,
    }
}

fn webhook(number: u8) -> NewWebhook {
    NewWebhook {
        id: WebhookId::from_random([number; 16]),
        definition: definition(),
        secret: Secret::from_random([number; 32]),
        created: NOW,
    }
}

async fn with_webhook(store: &Store, number: u8) -> WebhookId {
    store
        .create_webhook(&webhook(number), 100)
        .await
        .expect("created")
        .id
}

fn message(webhook: &WebhookId, number: u8) -> NewDelivery {
    let mut digest = [number; 32];
    digest[..16].copy_from_slice(&webhook.as_str().as_bytes()[3..19]);
    NewDelivery {
        id: MessageId::from_digest(digest),
        webhook: webhook.clone(),
        slot: 7,
        body: BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from(",\"data\":{}}")),
    }
}

async fn claim(store: &Store, now: Timestamp) -> Vec<ClaimedDelivery> {
    store
        .claim_due(now, now.after(LEASE), PLENTY)
        .await
        .expect("claims")
}

fn attempt(status: u16) -> Attempt {
    Attempt {
        started: NOW,
        duration: Duration::from_millis(12),
        status: Some(status),
        error: None,
    }
}

#[tokio::test]
async fn a_webhook_comes_back_as_it_was_written() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
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
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    for number in 1..=5 {
        with_webhook(&store, number).await;
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
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    assert_eq!(store.webhook_revision().await.expect("read"), Revision(0));
    let id = with_webhook(&store, 1).await;
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
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
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

#[tokio::test]
async fn sequences_are_contiguous_per_webhook_and_replay_changes_nothing() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let (first, second) = (with_webhook(&store, 1).await, with_webhook(&store, 2).await);
    let slot_7 = [message(&first, 1), message(&second, 1), message(&first, 2)];
    assert_eq!(
        store
            .commit_slot(7, &slot_7, NOW)
            .await
            .expect("commits")
            .inserted,
        3
    );
    let before = claim(&store, NOW).await;

    // A replay that overlaps: one known message, one new.
    let slot_8 = [message(&first, 2), message(&first, 3)];
    assert_eq!(
        store
            .commit_slot(8, &slot_8, NOW)
            .await
            .expect("commits")
            .inserted,
        1
    );
    assert_eq!(
        store
            .commit_slot(8, &slot_8, NOW)
            .await
            .expect("commits")
            .inserted,
        0
    );

    let numbers =
        |of: Vec<crate::Delivery>| of.iter().map(|each| each.sequence).collect::<Vec<_>>();
    assert_eq!(
        numbers(store.deliveries_of(&first, 0, 10).await.expect("read")),
        [1, 2, 3]
    );
    assert_eq!(
        numbers(store.deliveries_of(&first, 2, 10).await.expect("read")),
        [3]
    );
    assert_eq!(
        numbers(store.deliveries_of(&second, 0, 10).await.expect("read")),
        [1]
    );
    let bodies: Vec<_> = before
        .iter()
        .filter(|each| each.webhook == first)
        .map(|each| each.body.as_str())
        .collect();
    assert_eq!(
        bodies,
        [
            "{\"sequence\":1,\"data\":{}}",
            "{\"sequence\":2,\"data\":{}}"
        ]
    );
}

#[tokio::test]
async fn messages_of_a_deleted_webhook_are_skipped_and_do_not_block_the_slot() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let (gone, stays) = (with_webhook(&store, 1).await, with_webhook(&store, 2).await);
    store
        .commit_slot(6, &[message(&gone, 9)], NOW)
        .await
        .expect("commits");
    store.delete_webhook(&gone).await.expect("deletes");
    assert_eq!(
        store.pending_deliveries().await.expect("counts"),
        0,
        "what it was owed goes with it"
    );
    let committed = store
        .commit_slot(7, &[message(&gone, 1), message(&stays, 1)], NOW)
        .await
        .expect("commits");
    assert_eq!((committed.inserted, committed.checkpoint), (1, 7));
}

#[tokio::test]
async fn the_checkpoint_never_moves_back() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    assert_eq!(store.checkpoint().await.expect("read"), None);
    store.commit_slot(10, &[], NOW).await.expect("commits");
    let late = store
        .commit_slot(9, &[], NOW)
        .await
        .expect("a late slot is stored all the same");
    assert_eq!(late.checkpoint, 10);
    assert_eq!(store.checkpoint().await.expect("read"), Some(10));

    let mut write = store
        .write(super::Durability::Durable)
        .await
        .expect("begins");
    let forced = sqlx::query("UPDATE checkpoint SET slot = 9")
        .execute(&mut *write)
        .await;
    assert!(
        forced
            .expect_err("refused")
            .to_string()
            .contains("never moves back")
    );
}

#[tokio::test]
async fn a_slot_that_cannot_be_stored_leaves_no_trace() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let id = with_webhook(&store, 1).await;
    let mut too_large = message(&id, 2);
    too_large.slot = u64::MAX;
    let failed = store
        .commit_slot(7, &[message(&id, 1), too_large], NOW)
        .await;
    assert!(matches!(failed, Err(StoreError::OutOfRange { .. })));
    assert_eq!(store.checkpoint().await.expect("read"), None);
    assert_eq!(store.pending_deliveries().await.expect("counts"), 0);
    store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect("the number 1 is still free");
    assert_eq!(
        store.deliveries_of(&id, 0, 9).await.expect("read")[0].sequence,
        1
    );
}

#[tokio::test]
async fn a_lease_keeps_others_away_until_it_ends() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let id = with_webhook(&store, 1).await;
    store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect("commits");
    let first = claim(&store, NOW).await;
    assert_eq!(first.len(), 1);
    assert!(claim(&store, NOW).await.is_empty());
    assert!(
        claim(&store, NOW.after(LEASE).before(Duration::from_millis(1)))
            .await
            .is_empty()
    );

    let second = claim(&store, NOW.after(LEASE)).await;
    assert_eq!(second[0].body, first[0].body, "the same bytes again");
    let late = Outcome::Retry { at: NOW };
    let counted = store
        .record_attempt(&first[0], &attempt(500), &late)
        .await
        .expect("records");
    assert!(!counted, "the lease had passed on");
    let counted = store
        .record_attempt(&second[0], &attempt(200), &Outcome::Accepted)
        .await
        .expect("records");
    assert!(counted);
    let after = store.deliveries_of(&id, 0, 9).await.expect("read");
    assert_eq!(
        (after[0].state, after[0].attempts),
        (DeliveryState::Delivered, 1)
    );
}

#[tokio::test]
async fn a_released_message_is_due_again_at_once() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let id = with_webhook(&store, 1).await;
    store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect("commits");
    let claimed = claim(&store, NOW).await;
    store.release(&claimed[0]).await.expect("releases");
    let again = claim(&store, NOW).await;
    assert_eq!((again.len(), again[0].attempts_before), (1, 0));
}

#[tokio::test]
async fn results_of_attempts_are_kept() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let id = with_webhook(&store, 1).await;
    store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect("commits");
    let claimed = claim(&store, NOW).await;
    let at = NOW.after(Duration::from_secs(5));
    let failed = Attempt {
        status: None,
        error: Some("x".repeat(600)),
        ..attempt(500)
    };
    store
        .record_attempt(&claimed[0], &failed, &Outcome::Retry { at })
        .await
        .expect("records");
    assert_eq!(
        store
            .webhook(&id)
            .await
            .expect("read")
            .expect("exists")
            .last_triggered,
        None
    );
    assert!(
        claim(&store, at.before(Duration::from_millis(1)))
            .await
            .is_empty(),
        "not due yet"
    );

    let claimed = claim(&store, at).await;
    assert_eq!(claimed[0].attempts_before, 1);
    store
        .record_attempt(&claimed[0], &attempt(204), &Outcome::Accepted)
        .await
        .expect("records");
    let triggered = store
        .webhook(&id)
        .await
        .expect("read")
        .expect("exists")
        .last_triggered;
    assert_eq!(triggered, Some(NOW.after(Duration::from_millis(12))));
    let attempts = store.attempts_of(&claimed[0].id).await.expect("read");
    assert_eq!(attempts.len(), 2);
    assert_eq!(
        attempts[0].error.as_ref().map(String::len),
        Some(500),
        "cut to its limit"
    );
    assert_eq!(attempts[1].status, Some(204));
    assert_eq!(store.pending_deliveries().await.expect("counts"), 0);
}

#[tokio::test]
async fn an_exhausted_message_is_kept_as_failed() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let id = with_webhook(&store, 1).await;
    store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect("commits");
    let claimed = claim(&store, NOW).await;
    store
        .record_attempt(&claimed[0], &attempt(500), &Outcome::Exhausted)
        .await
        .expect("records");
    assert_eq!(
        store.deliveries_of(&id, 0, 9).await.expect("read")[0].state,
        DeliveryState::Failed
    );
    assert!(claim(&store, NOW.after(LEASE * 100)).await.is_empty());
}

#[tokio::test]
async fn a_receiver_that_is_gone_switches_its_webhook_off_and_nothing_is_lost() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let id = with_webhook(&store, 1).await;
    store
        .commit_slot(7, &[message(&id, 1), message(&id, 2)], NOW)
        .await
        .expect("commits");
    let claimed = claim(&store, NOW).await;
    let gone = Outcome::Gone {
        reason: "answered 410".to_owned(),
        retry_at: NOW,
    };
    store
        .record_attempt(&claimed[0], &attempt(410), &gone)
        .await
        .expect("records");
    store.release(&claimed[1]).await.expect("releases");

    let off = store.webhook(&id).await.expect("read").expect("exists");
    assert!(!off.definition.active);
    assert_eq!(off.disabled_reason.as_deref(), Some("answered 410"));
    assert_eq!(store.webhook_revision().await.expect("read"), Revision(2));
    assert!(
        claim(&store, NOW).await.is_empty(),
        "nothing is sent while it is off"
    );

    let on = store
        .update_webhook(&id, &definition())
        .await
        .expect("updates")
        .expect("exists");
    assert_eq!((on.definition.active, on.disabled_reason), (true, None));
    assert_eq!(claim(&store, NOW).await.len(), 2, "both are still owed");
}

#[tokio::test]
async fn an_answer_from_the_old_url_does_not_switch_off_the_new_one() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let id = with_webhook(&store, 1).await;
    store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect("commits");
    let claimed = claim(&store, NOW).await;
    let moved = WebhookDefinition {
        url: "https://example.com/new".to_owned(),
        ..definition()
    };
    store.update_webhook(&id, &moved).await.expect("updates");
    let gone = Outcome::Gone {
        reason: "answered 410".to_owned(),
        retry_at: NOW,
    };
    store
        .record_attempt(&claimed[0], &attempt(410), &gone)
        .await
        .expect("records");
    assert!(
        store
            .webhook(&id)
            .await
            .expect("read")
            .expect("exists")
            .definition
            .active
    );
    assert_eq!(claim(&store, NOW).await[0].url, moved.url);
}

#[tokio::test]
async fn one_webhook_cannot_take_the_share_of_another() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let (busy, quiet) = (with_webhook(&store, 1).await, with_webhook(&store, 2).await);
    let mut slot: Vec<_> = (1..=20).map(|number| message(&busy, number)).collect();
    slot.push(message(&quiet, 1));
    store.commit_slot(7, &slot, NOW).await.expect("commits");
    let limits = ClaimLimits {
        total: 10,
        per_webhook: 3,
    };
    let claimed = store
        .claim_due(NOW, NOW.after(LEASE), limits)
        .await
        .expect("claims");
    assert_eq!(
        claimed.iter().filter(|each| each.webhook == busy).count(),
        3
    );
    assert_eq!(
        claimed.iter().filter(|each| each.webhook == quiet).count(),
        1
    );
    let more = store
        .claim_due(NOW, NOW.after(LEASE), limits)
        .await
        .expect("claims");
    assert!(
        more.is_empty(),
        "the busy one's share is under lease, the quiet one has no more"
    );

    let total = ClaimLimits {
        total: 2,
        per_webhook: 100,
    };
    let later = NOW.after(LEASE);
    assert_eq!(
        store
            .claim_due(later, later.after(LEASE), total)
            .await
            .expect("claims")
            .len(),
        2
    );
}

#[tokio::test]
async fn a_proof_of_the_same_filter_keeps_its_first_slot() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    assert_eq!(store.filter_state().await.expect("read"), None);
    let state = |revision, since_slot| FilterState {
        revision: Revision(revision),
        since_slot,
    };
    store
        .record_filter_state(state(1, 10))
        .await
        .expect("records");
    store
        .record_filter_state(state(1, 20))
        .await
        .expect("records");
    assert_eq!(
        store.filter_state().await.expect("read"),
        Some(state(1, 10))
    );
    store
        .record_filter_state(state(2, 30))
        .await
        .expect("records");
    assert_eq!(
        store.filter_state().await.expect("read"),
        Some(state(2, 30))
    );
}

#[tokio::test]
async fn pruning_takes_old_finished_messages_only() {
    let Fixture {
        store,
        folder: _folder,
    } = fixture().await;
    let id = with_webhook(&store, 1).await;
    store
        .commit_slot(7, &[message(&id, 1), message(&id, 2)], NOW)
        .await
        .expect("commits");
    let claimed = claim(&store, NOW).await;
    store
        .record_attempt(&claimed[0], &attempt(200), &Outcome::Accepted)
        .await
        .expect("records");
    assert_eq!(store.prune_finished(NOW).await.expect("prunes"), 0);
    assert_eq!(
        store
            .prune_finished(NOW.after(LEASE))
            .await
            .expect("prunes"),
        1
    );
    let left = store.deliveries_of(&id, 0, 9).await.expect("read");
    assert_eq!(
        (left.len(), left[0].sequence),
        (1, 2),
        "numbers are not given again"
    );
    assert!(
        store
            .attempts_of(&claimed[0].id)
            .await
            .expect("read")
            .is_empty()
    );
}

#[tokio::test]
async fn everything_survives_a_restart_and_two_processes_share_the_file() {
    let Fixture { folder, store } = fixture().await;
    let path = folder.path().join("new/sluice.db");
    let other = Store::open(&path).await.expect("opens a second time");
    let id = with_webhook(&other, 1).await;
    store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect("commits");
    assert_eq!(claim(&other, NOW).await.len(), 1);
    assert!(
        claim(&store, NOW).await.is_empty(),
        "leases hold across processes"
    );
    store.close().await;
    other.close().await;

    let reopened = Store::open(&path).await.expect("opens again");
    assert_eq!(reopened.checkpoint().await.expect("read"), Some(7));
    assert_eq!(
        reopened
            .webhook(&id)
            .await
            .expect("read")
            .expect("exists")
            .definition,
        definition()
    );
}

#[tokio::test]
async fn a_database_file_that_vanishes_is_noticed_by_reads_and_writes() {
    let Fixture { folder, store } = fixture().await;
    let path = folder.path().join("new/sluice.db");
    let away = folder.path().join("away.db");
    let id = with_webhook(&store, 1).await;
    store.check().await.expect("healthy");

    std::fs::rename(&path, &away).expect("moves the file away");
    assert!(matches!(
        store.check().await,
        Err(StoreError::FileGone { .. })
    ));
    let refused = store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect_err("refused");
    assert!(
        refused.to_string().ends_with("is gone or was replaced"),
        "{refused}"
    );

    std::fs::copy(&away, &path).expect("puts a copy in its place");
    assert!(
        matches!(store.check().await, Err(StoreError::FileGone { .. })),
        "a copy is another file"
    );

    std::fs::rename(&away, &path).expect("puts the file back");
    store.check().await.expect("healthy again");
    assert_eq!(
        store.checkpoint().await.expect("read"),
        None,
        "the refused slot left no trace"
    );
}

#[tokio::test]
async fn a_file_that_vanishes_during_a_write_stops_its_commit() {
    let Fixture { folder, store } = fixture().await;
    let write = store
        .write(super::Durability::Durable)
        .await
        .expect("begins");
    std::fs::remove_file(folder.path().join("new/sluice.db")).expect("deletes the file");
    assert!(matches!(
        write.commit().await,
        Err(StoreError::FileGone { .. })
    ));
}

#[tokio::test]
async fn a_store_can_be_opened_and_used_by_a_spawned_task() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sluice.db");
    let task = tokio::spawn(async move {
        let store = Store::open(&path).await?;
        store.commit_slot(1, &[], NOW).await?;
        store.claim_due(NOW, NOW.after(LEASE), PLENTY).await
    });
    assert!(task.await.expect("no panic").expect("works").is_empty());
}

#[tokio::test]
async fn the_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let Fixture { folder, store } = fixture().await;
    with_webhook(&store, 1).await;
    for name in ["sluice.db", "sluice.db-wal"] {
        let metadata = std::fs::metadata(folder.path().join("new").join(name)).expect("exists");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_folder_in_place_of_the_file_is_an_error_and_not_a_panic() {
    let folder = tempfile::tempdir().expect("temporary folder");
    assert!(matches!(
        Store::open(folder.path()).await,
        Err(StoreError::Open { .. })
    ));
}

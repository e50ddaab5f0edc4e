//! Leases, attempts and what becomes of a message.

use super::*;

#[tokio::test]
async fn a_lease_keeps_others_away_until_it_ends() {
    let (fixture, id) = owing().await;
    let store = &fixture.store;
    let first = claim(store, NOW).await;
    assert_eq!(first.len(), 1);
    assert!(claim(store, NOW).await.is_empty());
    assert!(
        claim(store, NOW.after(LEASE).before(Duration::from_millis(1)))
            .await
            .is_empty()
    );

    let second = claim(store, NOW.after(LEASE)).await;
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
    let (fixture, _) = owing().await;
    let store = &fixture.store;
    let claimed = claim(store, NOW).await;
    store.release(&claimed[0]).await.expect("releases");
    let again = claim(store, NOW).await;
    assert_eq!((again.len(), again[0].attempts_before), (1, 0));
}

#[tokio::test]
async fn results_of_attempts_are_kept() {
    let (fixture, id) = owing().await;
    let store = &fixture.store;
    let claimed = claim(store, NOW).await;
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
        claim(store, at.before(Duration::from_millis(1)))
            .await
            .is_empty(),
        "not due yet"
    );

    let claimed = claim(store, at).await;
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
    let (fixture, id) = owing().await;
    let store = &fixture.store;
    let claimed = claim(store, NOW).await;
    store
        .record_attempt(&claimed[0], &attempt(500), &Outcome::Exhausted)
        .await
        .expect("records");
    assert_eq!(
        store.deliveries_of(&id, 0, 9).await.expect("read")[0].state,
        DeliveryState::Failed
    );
    assert!(claim(store, NOW.after(LEASE * 100)).await.is_empty());
}

#[tokio::test]
async fn a_receiver_that_is_gone_switches_its_webhook_off_and_nothing_is_lost() {
    let fixture = fixture().await;
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    store
        .commit_slot(7, &[message(&id, 1), message(&id, 2)], NOW)
        .await
        .expect("commits");
    let claimed = claim(store, NOW).await;
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
        claim(store, NOW).await.is_empty(),
        "nothing is sent while it is off"
    );

    let on = store
        .update_webhook(&id, &definition())
        .await
        .expect("updates")
        .expect("exists");
    assert_eq!((on.definition.active, on.disabled_reason), (true, None));
    assert_eq!(claim(store, NOW).await.len(), 2, "both are still owed");
}

#[tokio::test]
async fn an_answer_from_the_old_url_does_not_switch_off_the_new_one() {
    let (fixture, id) = owing().await;
    let store = &fixture.store;
    let claimed = claim(store, NOW).await;
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
    assert_eq!(claim(store, NOW).await[0].url, moved.url);
}

#[tokio::test]
async fn one_webhook_cannot_take_the_share_of_another() {
    let fixture = fixture().await;
    let store = &fixture.store;
    let (busy, quiet) = (with_webhook(store, 1).await, with_webhook(store, 2).await);
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
async fn pruning_takes_old_finished_messages_only() {
    let fixture = fixture().await;
    let store = &fixture.store;
    let id = with_webhook(store, 1).await;
    store
        .commit_slot(7, &[message(&id, 1), message(&id, 2)], NOW)
        .await
        .expect("commits");
    let claimed = claim(store, NOW).await;
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

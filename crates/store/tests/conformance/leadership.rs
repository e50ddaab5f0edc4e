//! Leadership: one process ingests, others stand by.

use std::time::{Duration, Instant};

use sluice_store::{Commit, Commitment, StoreError};

use crate::{fixture::*, on_both};

on_both!(
    one_leads_and_a_standby_takes_over,
    one_that_stands_still_is_followed_and_writes_nothing_any_more,
    a_write_that_is_under_way_is_awaited_before_another_leads,
);

async fn one_leads_and_a_standby_takes_over(fixture: &Fixture) {
    let standby = fixture.another().await;
    let mut leader = fixture
        .store
        .try_acquire_leadership()
        .await
        .expect("asks")
        .expect("is free");
    assert!(
        standby
            .try_acquire_leadership()
            .await
            .expect("asks")
            .is_none()
    );
    leader.renew().await.expect("still leads");
    leader.release().await.expect("releases");

    let second = standby
        .try_acquire_leadership()
        .await
        .expect("asks")
        .expect("is free");
    assert!(
        fixture
            .store
            .try_acquire_leadership()
            .await
            .expect("asks")
            .is_none()
    );
    // A leader that dies does not release it.
    drop(second);
    for _ in 0..100 {
        if fixture
            .store
            .try_acquire_leadership()
            .await
            .expect("asks")
            .is_some()
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the leadership was not passed on");
}

/// How soon another process leads after the leader was stopped.
const TAKE_OVER: Duration = Duration::from_secs(15);

async fn one_that_stands_still_is_followed_and_writes_nothing_any_more(fixture: &Fixture) {
    let standby = fixture.another().await;
    let webhook = with_webhook(&standby, 1).await;
    let acquired = fixture.store.try_acquire_leadership().await;
    let mut stopped = acquired.expect("asks").expect("is free");
    let commit = |slot, messages| Commit::slot(Commitment::Confirmed, slot, messages, NOW);
    let first = [message(&webhook, 1)];
    let written = stopped.store().commit(&commit(7, &first)).await;
    assert_eq!(written.expect("leads").inserted, 1);
    assert!(!standby.is_leader_silent().await.expect("reads"));

    let since = Instant::now();
    let mut next = loop {
        if let Some(next) = standby.try_acquire_leadership().await.expect("asks") {
            break next;
        }
        assert!(since.elapsed() < TAKE_OVER, "the leader is not followed");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let second = [message(&webhook, 2)];
    let written = next.store().commit(&commit(8, &second)).await;
    assert_eq!(written.expect("leads").inserted, 1);

    // The first one goes on as if nothing had happened.
    let late = [message(&webhook, 3)];
    let refused = stopped.store().commit(&commit(9, &late)).await;
    assert!(matches!(refused, Err(StoreError::NotLeader)), "{refused:?}");
    assert!(stopped.renew().await.is_err(), "it does not lead");
    let checkpoint = standby.checkpoint(Commitment::Confirmed).await;
    assert_eq!(checkpoint.expect("reads"), Some(8));
    let written = next.store().commit(&commit(9, &late)).await;
    assert_eq!(written.expect("leads").inserted, 1);
    next.renew().await.expect("still leads");
    let sequences = deliveries(&standby, &webhook).await;
    let sequences: Vec<_> = sequences.iter().map(|each| each.sequence).collect();
    assert_eq!(sequences, [1, 2, 3]);
}

async fn a_write_that_is_under_way_is_awaited_before_another_leads(fixture: &Fixture) {
    let standby = fixture.another().await;
    let acquired = fixture.store.try_acquire_leadership().await;
    let leader = acquired.expect("asks").expect("is free");
    let store = leader.store().clone();
    // The lock goes, as with a connection that is cut; what was begun does not know that yet.
    drop(leader);
    let webhook = with_webhook(&standby, 1).await;
    let writing = async {
        let mut written = Vec::new();
        for number in 1..=200 {
            let messages = [message(&webhook, number)];
            let slot = u64::from(number);
            let commit = Commit::slot(Commitment::Confirmed, slot, &messages, NOW);
            match store.commit(&commit).await {
                Ok(committed) => written.push((Instant::now(), committed.inserted)),
                Err(error) => {
                    assert!(matches!(error, StoreError::NotLeader), "{error}");
                    break;
                }
            }
        }
        written
    };
    let taking = async {
        loop {
            if let Some(next) = standby.try_acquire_leadership().await.expect("asks") {
                return (Instant::now(), next);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (written, (taken, _next)) = tokio::join!(writing, taking);
    assert!(written.len() < 200, "the old leader was refused in the end");
    // An answer may come a moment after the commit it is about.
    let moment = Duration::from_millis(500);
    assert!(written.iter().all(|(at, _)| *at < taken + moment));
}

//! Leadership: one process ingests, others stand by.

use std::time::{Duration, Instant};

use sluice_store::{Commit, Commitment, Leadership, Store, StoreError};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::time::{sleep, timeout};

use crate::{fixture::*, on_both};

on_both!(
    one_leads_and_a_standby_takes_over,
    one_that_stands_still_is_followed_and_writes_nothing_any_more,
    a_write_that_is_under_way_is_awaited_before_another_leads,
);

/// No step takes longer unless something hangs: several times the silence after which a leader is followed.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a leader leads after its last sign of life, and how soon it is followed on a machine that is not busy.
const LEADERS_LEASE: Duration = Duration::from_secs(9);
const TAKE_OVER: Duration = Duration::from_secs(15);

/// The lock of the leader in PostgreSQL, "sluice.l".
const LEADER_LOCK: i64 = 0x736c_7569_6365_2e6c;

/// Asks for the leadership until it is free.
async fn lead(store: &Store) -> Leadership {
    let asking = async {
        loop {
            if let Some(leads) = store.try_acquire_leadership().await.expect("asks") {
                return leads;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, asking)
        .await
        .expect("the leadership is not passed on")
}

async fn is_silent(store: &Store) -> bool {
    store.readiness().await.expect("reads").leader_is_silent
}

async fn one_leads_and_a_standby_takes_over(fixture: &Fixture) {
    let standby = fixture.another().await;
    assert!(is_silent(&standby).await, "nobody has led yet");
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
    assert!(!is_silent(&standby).await);
    leader.release().await.expect("releases");
    assert!(is_silent(&standby).await, "nobody leads any more");

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
    lead(&fixture.store).await;
}

async fn one_that_stands_still_is_followed_and_writes_nothing_any_more(fixture: &Fixture) {
    let standby = fixture.another().await;
    let webhook = with_webhook(&standby, 1).await;
    let acquired = fixture.store.try_acquire_leadership().await;
    let mut stopped = acquired.expect("asks").expect("is free");
    let commit = |slot, messages| Commit::slot(Commitment::Confirmed, slot, messages, NOW);
    let first = [message(&webhook, 1)];
    let written = stopped.store().commit(&commit(7, &first)).await;
    assert_eq!(written.expect("leads").inserted(), 1);
    assert!(!is_silent(&standby).await);
    let silent = async {
        while !is_silent(&standby).await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let silent = timeout(PATIENCE, silent).await;
    silent.expect("one that stands still is not noticed");

    let mut next = lead(&standby).await;
    assert!(!is_silent(&standby).await);
    let second = [message(&webhook, 2)];
    let written = next.store().commit(&commit(8, &second)).await;
    assert_eq!(written.expect("leads").inserted(), 1);

    // The first one goes on as if nothing had happened.
    let late = [message(&webhook, 3)];
    let refused = stopped.store().commit(&commit(9, &late)).await;
    assert!(matches!(refused, Err(StoreError::NotLeader)), "{refused:?}");
    assert!(stopped.renew().await.is_err(), "it does not lead");
    let checkpoint = standby.checkpoint(Commitment::Confirmed).await;
    assert_eq!(checkpoint.expect("reads"), Some(8));
    let written = next.store().commit(&commit(9, &late)).await;
    assert_eq!(written.expect("leads").inserted(), 1);
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
    // Writes until it is refused; returns the last slot that was written.
    let writing = async {
        let mut written = None;
        for slot in 1.. {
            let commit = Commit::slot(Commitment::Confirmed, slot, &[], NOW);
            match store.commit(&commit).await {
                Ok(_) => written = Some(slot),
                Err(error) => {
                    assert!(matches!(error, StoreError::NotLeader), "{error}");
                    break;
                }
            }
        }
        written
    };
    let taking = async {
        let next = lead(&standby).await;
        let there = standby.checkpoint(Commitment::Confirmed).await;
        (there.expect("reads"), next)
    };
    let both = timeout(PATIENCE, async { tokio::join!(writing, taking) });
    let (written, (there, _next)) = both.await.expect("the old leader is not refused");
    assert_eq!(written, there, "nothing is written once another leads");
}

/// A raw session that holds the lock of the leader, without a lease of its own; and its process.
async fn with_lock(fixture: &Fixture) -> (PgConnection, i32) {
    let mut holder = fixture.session().await;
    let took =
        sqlx::query_as("SELECT pg_try_advisory_lock($1), pg_backend_pid()").bind(LEADER_LOCK);
    let (took, process): (bool, i32) = took.fetch_one(&mut holder).await.expect("asks");
    assert!(took, "the lock is free");
    (holder, process)
}

/// Who takes the free lock notes its lease a moment later: in that moment there is none, or one that was over long ago.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_has_just_taken_the_lock_is_not_deposed() {
    let fixture = Fixture::postgres("one_that_has_just_taken_the_lock").await;
    for until in ["NULL", "1"] {
        let (mut holder, process) = with_lock(&fixture).await;
        let set = format!("UPDATE leadership SET until = {until}");
        let set = sqlx::query(AssertSqlSafe(set)).execute(&mut holder).await;
        set.expect("sets");
        let asked = fixture.store.try_acquire_leadership().await;
        assert!(asked.expect("asks").is_none(), "until {until}");
        let lives = sqlx::query_scalar("SELECT pg_backend_pid()");
        let lives: i32 = lives.fetch_one(&mut holder).await.expect("is not deposed");
        assert_eq!(lives, process);
        holder.close().await.expect("closes");
        let leader = lead(&fixture.store).await;
        leader.release().await.expect("releases");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_stands_still_between_the_lock_and_its_first_lease_is_followed_in_time() {
    let fixture = Fixture::postgres("one_that_stands_still_before_its_lease").await;
    let begun = Instant::now();
    let (mut holder, _) = with_lock(&fixture).await;
    let next = lead(&fixture.store).await;
    let took = begun.elapsed();
    assert!(took >= LEADERS_LEASE, "it was not waited for: {took:?}");
    assert!(took <= TAKE_OVER, "{took:?}");
    let late = sqlx::query("SELECT 1").execute(&mut holder).await;
    assert!(late.is_err(), "the session that held the lock goes on");
    next.release().await.expect("releases");
}

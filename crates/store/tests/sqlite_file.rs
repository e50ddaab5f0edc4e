//! SQLite's file: it is private, may vanish, and is locked by the leader.

use std::os::unix::fs::PermissionsExt;

use sluice_store::{Checkpoints, Commit, Commitment, Store, StoreError, Timestamp};
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

async fn fixture() -> (TempDir, Store) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("new/sluice.db");
    let store = Store::open(&path).await.expect("opens");
    (folder, store)
}

const fn slot(slot: u64) -> Commit<'static> {
    Commit::slot(Commitment::Confirmed, slot, &[], NOW)
}

#[tokio::test]
async fn everything_survives_a_restart_and_two_processes_share_the_file() {
    let (folder, store) = fixture().await;
    let path = folder.path().join("new/sluice.db");
    let other = Store::open(&path).await.expect("opens a second time");
    store.commit(&slot(7)).await.expect("commits");
    let seen = other.checkpoint(Commitment::Confirmed).await;
    assert_eq!(seen.expect("reads"), Some(7));
    store.close().await;
    other.close().await;
    let reopened = Store::open(&path).await.expect("opens again");
    let kept = reopened.checkpoint(Commitment::Confirmed).await;
    assert_eq!(kept.expect("reads"), Some(7));
}

#[tokio::test]
async fn a_database_file_that_vanishes_is_noticed_by_reads_and_writes() {
    let (folder, store) = fixture().await;
    let path = folder.path().join("new/sluice.db");
    let away = folder.path().join("away.db");
    store.check().await.expect("healthy");

    std::fs::rename(&path, &away).expect("moves the file away");
    let gone = store.check().await;
    assert!(matches!(gone, Err(StoreError::FileGone { .. })));
    let refused = store.commit(&slot(7)).await.expect_err("refused");
    assert!(
        refused.to_string().ends_with("is gone or was replaced"),
        "{refused}"
    );

    std::fs::copy(&away, &path).expect("puts a copy in its place");
    let copy = store.check().await;
    assert!(
        matches!(copy, Err(StoreError::FileGone { .. })),
        "a copy is another file"
    );

    std::fs::rename(&away, &path).expect("puts the file back");
    store.check().await.expect("healthy again");
    let checkpoint = store.checkpoint(Commitment::Confirmed).await;
    assert_eq!(
        checkpoint.expect("reads"),
        None,
        "the refused slot left no trace"
    );
}

#[tokio::test]
async fn leadership_ends_with_the_file_it_is_about() {
    let (folder, store) = fixture().await;
    let mut leader = store
        .try_acquire_leadership()
        .await
        .expect("asks")
        .expect("is free");
    leader.renew().await.expect("leads");
    std::fs::remove_file(folder.path().join("new/sluice.db")).expect("deletes the file");
    assert!(matches!(
        leader.renew().await,
        Err(StoreError::FileGone { .. })
    ));
}

#[tokio::test]
async fn a_store_can_be_opened_and_used_by_a_spawned_task() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sluice.db");
    let task = tokio::spawn(async move {
        let store = Store::open(&path).await?;
        store.commit(&slot(1)).await
    });
    let committed = task.await.expect("no panic").expect("works");
    assert_eq!(
        committed.checkpoints,
        Checkpoints::at(Commitment::Confirmed, 1)
    );
}

#[tokio::test]
async fn the_file_is_for_its_owner_only() {
    let (folder, store) = fixture().await;
    store.commit(&slot(1)).await.expect("commits");
    let _leader = store
        .try_acquire_leadership()
        .await
        .expect("asks")
        .expect("is free");
    for name in ["sluice.db", "sluice.db-wal", "sluice.db-lead"] {
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

#[tokio::test]
async fn an_error_never_repeats_the_password_of_a_url() {
    for url in [
        "postgres://sluice:s3cret@127.0.0.1:1/db",
        "postgres://sluice:s3cret@[",
    ] {
        let error = Store::connect(url).await.expect_err("no server is there");
        assert!(
            !format!("{error} {error:?}").contains("s3cret"),
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn any_number_may_open_a_new_file_at_once() {
    for round in 0..20 {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("sluice.db");
        let openings = (0..4).map(|_| {
            let path = path.clone();
            tokio::spawn(async move { Store::open(&path).await })
        });
        for opening in openings.collect::<Vec<_>>() {
            let store = opening.await.expect("no panic");
            store.unwrap_or_else(|error| panic!("round {round}: {error:?}"));
        }
    }
}

#[tokio::test]
async fn the_log_is_folded_into_the_database_after_some_transactions_however_short_it_is() {
    let (folder, store) = fixture().await;
    let path = folder.path().join("new/sluice.db");
    let length = || std::fs::metadata(&path).expect("exists").len();
    let page = 4096;
    let before = length();
    assert!(
        before <= page,
        "what was written is in the log alone: {before} bytes"
    );
    let mut number = 0;
    while length() <= page {
        number += 1;
        assert!(number < 1_000, "nothing was folded");
        store.commit(&slot(number)).await.expect("commits");
    }
    assert!(number > 10, "it is folded for each transaction");
    // What was written since is not lost.
    store.close().await;
    let reopened = Store::open(&path).await.expect("opens again");
    let kept = reopened.checkpoint(Commitment::Confirmed).await;
    assert_eq!(kept.expect("reads"), Some(number));
}

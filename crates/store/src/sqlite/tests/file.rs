//! The database file itself.

use super::*;

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
    let write = store.write(Durability::Durable).await.expect("begins");
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

//! A PostgreSQL server that is killed loses nothing that was committed, and the store finds it again.

use std::{path::Path, process::Command, time::Duration};

use sluice_store::{
    Commit, Commitment, Store, Timestamp,
    testing::{Disk, PrivateCluster},
};

const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_comes_back_with_everything() {
    let folder = tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("folder");
    std::fs::set_permissions(
        folder.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .expect("may be entered");
    let cluster = PrivateCluster::start(&folder.path().join("cluster"), Disk::DoesNotWait)
        .expect("PostgreSQL starts");
    let url = cluster.create_database("killed").await.expect("creates");
    let store = Store::connect(&url).await.expect("connects");
    let mut leader = store
        .try_acquire_leadership()
        .await
        .expect("asks")
        .expect("is free");
    for slot in 1..=3 {
        let commit = Commit::slot(Commitment::Confirmed, slot, &[], NOW);
        store.commit(&commit).await.expect("commits");
        let pid = cluster.server_pid().expect("runs").to_string();
        let killed = Command::new("kill").args(["-9", &pid]).status();
        assert!(killed.expect("kill runs").success());
        let mut patience = 600;
        while let Err(error) = cluster.boot() {
            // The server's children need a moment to notice.
            patience -= 1;
            assert!(patience > 0, "{error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let kept = store.checkpoint(Commitment::Confirmed).await;
        // A connection of before may be handed out once more.
        let kept = match kept {
            Ok(kept) => kept,
            Err(_) => store
                .checkpoint(Commitment::Confirmed)
                .await
                .expect("connects again"),
        };
        assert_eq!(kept, Some(slot));
    }
    assert!(
        leader.renew().await.is_err(),
        "the leadership went with its connection"
    );
    assert!(
        store
            .try_acquire_leadership()
            .await
            .expect("asks")
            .is_some()
    );
}

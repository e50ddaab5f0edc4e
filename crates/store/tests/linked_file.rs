//! SQLite's file behind a symbolic link: the link's target is the database, with everything that is beside it.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use sluice_store::{
    Access, Commit, Commitment, EventKind, Filters, NewWebhook, Secret, Store, StoreError,
    Timestamp, WebhookDefinition, WebhookId,
};
use solana_pubkey::Pubkey;
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

const fn slot(slot: u64) -> Commit<'static> {
    Commit::slot(Commitment::Confirmed, slot, &[], NOW)
}

/// A link in one folder, and the file in another that it names. That folder is not there yet.
fn linked() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let root = folder.path().canonicalize().expect("is there");
    let (link, file) = (root.join("links/sluice.db"), root.join("files/new.db"));
    std::fs::create_dir(root.join("links")).expect("creates");
    symlink("../files/new.db", &link).expect("links");
    (folder, link, file)
}

async fn opened(path: &Path) -> Store {
    Store::open(path).await.expect("opens")
}

async fn checkpoint(store: &Store) -> Option<u64> {
    let checkpoint = store.checkpoint(Commitment::Confirmed).await;
    checkpoint.expect("reads")
}

#[tokio::test]
async fn a_link_without_a_file_creates_its_target_and_nothing_beside_the_link() {
    let (_folder, link, file) = linked();
    let store = opened(&link).await;
    store.commit(&slot(7)).await.expect("is on the disk");
    let beside = link.parent().expect("a folder").read_dir().expect("reads");
    assert_eq!(beside.count(), 1, "the link alone");
    let mode = |path: &Path| path.metadata().expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().expect("a folder")), 0o700);
}

#[tokio::test]
async fn what_is_written_through_a_link_is_on_the_disk_and_read_through_both_paths() {
    let (_folder, link, file) = linked();
    opened(&file).await.close().await;
    let through_link = opened(&link).await;
    let created = through_link.create_webhook(&webhook(), 1).await;
    let created = created.expect("is on the disk").id;
    through_link.commit(&slot(7)).await.expect("commits");
    let direct = opened(&file).await;
    direct.commit(&slot(8)).await.expect("commits");
    for store in [&through_link, &direct] {
        let found = store.webhook(&Access::All, &created).await;
        assert!(found.expect("reads").is_some());
        assert_eq!(checkpoint(store).await, Some(8));
    }
}

fn webhook() -> NewWebhook {
    let filters = Filters {
        accounts: vec![Pubkey::new_from_array([1; 32])],
        ..Filters::default()
    };
    let (url, kinds) = ("https://example.com/", EventKind::ALL.into_iter().collect());
    NewWebhook {
        id: WebhookId::from_random([1; 16]),
        owner: Access::All,
        definition: WebhookDefinition::new(url.to_owned(), kinds, filters),
        secret: Secret::from_random([1; 32]),
        created: NOW,
        relay_until: None,
    }
}

#[tokio::test]
async fn only_one_leads_of_those_that_open_a_link_and_its_target() {
    let (_folder, link, file) = linked();
    let (through_link, direct) = (opened(&link).await, opened(&file).await);
    let leads = through_link.try_acquire_leadership().await.expect("asks");
    let leads = leads.expect("is free");
    let second = direct.try_acquire_leadership().await.expect("asks");
    assert!(second.is_none());
    leads.release().await.expect("releases");
    let third = direct.try_acquire_leadership().await.expect("asks");
    assert!(third.is_some(), "the lock was one for both");
}

#[tokio::test]
async fn a_link_that_names_another_file_or_none_by_now_is_noticed() {
    let (folder, link, file) = linked();
    let store = opened(&link).await;
    store.check().await.expect("healthy");
    let other = folder.path().join("other.db");
    std::fs::copy(&file, &other).expect("copies");
    let point = |target: &Path| {
        std::fs::remove_file(&link).expect("removes the link");
        symlink(target, &link).expect("links");
    };
    point(&other);
    let elsewhere = store.check().await;
    assert!(matches!(elsewhere, Err(StoreError::FileGone { .. })));
    point(&file);
    store.check().await.expect("healthy again");
    let away = folder.path().join("away.db");
    std::fs::rename(&file, &away).expect("moves the file away");
    let gone = store.check().await;
    assert!(matches!(gone, Err(StoreError::FileGone { .. })));
    point(&away);
    let moved = store.commit(&slot(7)).await;
    assert!(
        matches!(moved, Err(StoreError::FileGone { .. })),
        "its log stayed where it was: {moved:?}"
    );
}

#[tokio::test]
async fn links_that_lead_in_a_circle_are_an_error() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (first, second) = (folder.path().join("a.db"), folder.path().join("b.db"));
    symlink(&first, &second).expect("links");
    symlink(&second, &first).expect("links");
    let refused = Store::open(&first).await;
    assert!(matches!(refused, Err(StoreError::Open { .. })));
}

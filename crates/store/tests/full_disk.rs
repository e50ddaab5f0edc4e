//! A disk that is full: nothing that was promised is lost, and work goes on by itself once there is room.

use std::{path::Path, sync::Arc};

use sluice_store::{
    Access, BodyTemplate, Commit, Commitment, DeliveryQuery, EventKind, Filters, MessageId,
    MessageKind, NewMessage, NewWebhook, Secret, Store, StoreError, Timestamp, WebhookDefinition,
    WebhookId, testing::PrivateCluster,
};
use sluice_testkit::small_disk::SmallDisk;
use solana_pubkey::Pubkey;
use sqlx::{Connection, PgConnection};

const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

/// Length of a body: a disk of a megabyte holds some dozens of them.
const BODY: usize = 10_000;

/// More messages than the small disk holds, and fewer than the large one does.
const MOST: u64 = 300;

async fn webhook(store: &Store) -> WebhookId {
    let kinds = EventKind::ALL.into_iter().collect();
    let filters = Filters {
        accounts: vec![Pubkey::new_from_array([1; 32])],
        programs: Vec::new(),
        ..Filters::default()
    };
    let new = NewWebhook {
        id: WebhookId::from_random([1; 16]),
        owner: Access::All,
        definition: WebhookDefinition::new("https://example.com/".to_owned(), kinds, filters),
        secret: Secret::from_random([1; 32]),
        created: NOW,
        relay_until: None,
    };
    store.create_webhook(&new, 1).await.expect("created").id
}

/// Commits the message of a slot, with the checkpoint.
async fn commit(store: &Store, webhook: &WebhookId, slot: u64) -> Result<(), StoreError> {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&slot.to_be_bytes());
    let rest = format!(",\"data\":\"{}\"}}", "x".repeat(BODY));
    let messages = [NewMessage {
        id: MessageId::from_bytes(id),
        webhook: webhook.clone(),
        kind: MessageKind::Event(EventKind::Transaction),
        commitment: Commitment::Confirmed,
        slot,
        order_key: None,
        body: BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from(rest)),
    }];
    let commit = Commit::slot(Commitment::Confirmed, slot, &messages, NOW);
    store.commit(&commit).await.map(drop)
}

/// Slots and sequences of the messages that are stored.
async fn stored(store: &Store, webhook: &WebhookId) -> Vec<(u64, u64)> {
    let query = DeliveryQuery::default();
    let page = store.deliveries(&Access::All, webhook, query, 1000).await;
    let page = page.expect("reads").expect("is there").into_iter();
    let numbers = page.map(|log| (log.delivery.slot, log.delivery.sequence));
    let mut numbers: Vec<_> = numbers.collect();
    numbers.reverse();
    numbers
}

/// Commits until there is no room. Returns the last slot that was stored.
async fn fill(store: &Store, webhook: &WebhookId) -> u64 {
    for slot in 1..MOST {
        match commit(store, webhook, slot).await {
            Ok(()) => {}
            Err(StoreError::Full(_)) => return slot - 1,
            Err(other) => panic!("slot {slot}: {other}"),
        }
    }
    panic!("the disk is too large to be filled")
}

async fn nothing_is_lost(store: &Store, make_room: impl AsyncFnOnce()) {
    let webhook = webhook(store).await;
    let last = fill(store, &webhook).await;
    assert!(last > 0);
    for _ in 0..3 {
        let refused = commit(store, &webhook, last + 1).await;
        assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    }
    store.check().await.expect("answers");
    let kept: Vec<_> = (1..=last).map(|number| (number, number)).collect();
    assert_eq!(stored(store, &webhook).await, kept, "it can be read");
    let checkpoint = store.checkpoint(Commitment::Confirmed).await;
    assert_eq!(checkpoint.expect("reads"), Some(last));

    make_room().await;
    for slot in last..=last + 20 {
        commit(store, &webhook, slot).await.expect("commits");
    }
    let kept: Vec<_> = (1..=last + 20).map(|number| (number, number)).collect();
    assert_eq!(stored(store, &webhook).await, kept);
    let leader = store.try_acquire_leadership().await.expect("asks");
    leader.expect("is free").release().await.expect("releases");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_may_not_grow_loses_nothing_and_goes_on_by_itself() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = Store::open(&folder.path().join("sluice.db")).await;
    let store = store.expect("opens");
    store.limit_pages(256).await.expect("limits");
    nothing_is_lost(&store, async || {
        store.limit_pages(1 << 20).await.expect("limits");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_and_goes_on_by_itself() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(disk) = SmallDisk::mount(folder.path(), "1m").expect("mount runs") else {
        eprintln!("not tried: only root may make a disk of its own");
        return;
    };
    let store = Store::open(&folder.path().join("sluice.db")).await;
    let store = store.expect("opens");
    nothing_is_lost(&store, async || disk.resize("64m").expect("resizes")).await;
    store.close().await;
}

/// PostgreSQL's answer when a disk is full, played by a trigger: a server whose own disk is full ends, and is no test of ours.
const REFUSING: &str = "
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.slot > 40 THEN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
        END IF;
        RETURN NEW;
    END;
    $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION refuse();";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_disk_is_full_loses_nothing_and_goes_on_by_itself() {
    let cluster = PrivateCluster::shared(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let cluster = cluster.expect("PostgreSQL starts");
    let name = format!("full_disk_{}", std::process::id());
    let url = cluster.create_database(&name).await.expect("creates");
    let store = Store::connect(&url).await.expect("connects");
    let mut connection = PgConnection::connect(&url).await.expect("connects");
    let refusing = sqlx::raw_sql(REFUSING).execute(&mut connection).await;
    refusing.expect("makes the trigger");
    nothing_is_lost(&store, async || {
        let trigger = sqlx::query("DROP TRIGGER full_disk ON messages");
        trigger.execute(&mut connection).await.expect("drops");
    })
    .await;
}

//! Two leaders: one cut off from the database is followed within seconds, and writes nothing when it is back.

use sluice_harness::indexer::{IndexerHarness, send, soon};
use sluice_store::{Access, Commitment, DeliveryQuery};
use sluice_testkit::updates::{freeze_and_confirm, whole};

use crate::{
    expectations::{Ending, Surroundings},
    linked_server::LinkedServer,
};

/// Most milliseconds from the moment in which a leader is cut off until another one has written what is read after it, by the
/// clock of the database: what subscribers are promised.
const TAKE_OVER: i64 = 15_000;

/// Unix milliseconds by the clock that all processes on the database share.
async fn database_time(harness: &IndexerHarness) -> i64 {
    let now = harness.store.server_time().await.expect("asks");
    now.expect("of a server").unix_millis()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_is_followed_and_refused_when_it_is_back() {
    let mut server = LinkedServer::start("cut_off").await;
    let (harness, link) = (&mut server.harness, &server.link);

    let id = harness.webhook(1).await;
    let first = harness.start_on_database(&server.url);
    let (old, name) = harness.listening().await;
    let body = first.until_checkpoint(10).await;
    assert_eq!(
        (&body["leads"], &body["standby"]),
        (&true.into(), &false.into())
    );
    let second = harness.start().await;
    let body = second.until_ready(|_, body| body["standby"] == true).await;
    assert_eq!(
        (&body["leads"], &body["ready"]),
        (&false.into(), &true.into())
    );

    let since = database_time(harness).await;
    link.freeze(true);
    // The first one goes on with what it reads; its statements arrive when the link works again.
    send(&old, whole(&name, 11)).await;
    send(&old, freeze_and_confirm(&name, 11)).await;
    let body = second.until_ready(|_, body| body["leads"] == true).await;
    let leads = database_time(harness).await - since;
    assert_eq!(body["standby"], false);
    let (new, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11));
    let name = request.slots.expect("asked for");
    send(&new, whole(&name, 11)).await;
    send(&new, freeze_and_confirm(&name, 11)).await;
    second.until_checkpoint(11).await;
    let writes = database_time(harness).await - since;
    println!("another process leads after {leads} ms, and has written after {writes} ms");
    assert!(writes <= TAKE_OVER, "{writes} ms");

    link.freeze(false);
    first.until_ready(|_, body| body["standby"] == true).await;
    send(&new, whole(&name, 12)).await;
    send(&new, freeze_and_confirm(&name, 12)).await;
    second.until_checkpoint(12).await;
    let sent = harness.bodies(6).await;
    let mut sequences: Vec<_> = sent.iter().map(|body| body["sequence"].as_u64()).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, (1..=6).map(Some).collect::<Vec<_>>());
    let stored = harness
        .store
        .deliveries(&Access::All, &id, DeliveryQuery::default(), 100);
    assert_eq!(stored.await.expect("read").expect("exists").len(), 6);
    let checkpoint = harness.store.checkpoint(Commitment::Confirmed).await;
    assert_eq!(checkpoint.expect("read"), Some(12));
    soon(first.stop()).await;
    soon(second.stop()).await;
}

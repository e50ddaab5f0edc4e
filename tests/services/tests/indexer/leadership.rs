//! Two leaders: one cut off from the database, or stopped, is followed within seconds, and writes nothing when it is back.

use std::{
    sync::mpsc::{Sender, channel},
    thread,
};

use sluice_geyser::scripted::Connection;
use sluice_harness::indexer::{Indexer, IndexerHarness, send, soon};
use sluice_store::{Access, Commitment, DeliveryQuery};
use sluice_testkit::updates::{freeze_and_confirm, whole};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

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
    println!("another process leads after {leads} ms");
    assert_eq!(body["standby"], false);
    let (new, name) = write_slot_11(harness, &second, since).await;

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

/// Has the new leader read and write slot 11, no later than a take-over may last after `since`, the database's time when the old one
/// was lost. Returns the new leader's stream, and the name of its slots filter.
async fn write_slot_11(
    harness: &mut IndexerHarness,
    leader: &Indexer,
    since: i64,
) -> (Connection, String) {
    let (stream, request) = harness.accept().await;
    assert_eq!(request.from_slot, Some(11));
    let name = request.slots.expect("asked for");
    send(&stream, whole(&name, 11)).await;
    send(&stream, freeze_and_confirm(&name, 11)).await;
    leader.until_checkpoint(11).await;
    let writes = database_time(harness).await - since;
    println!("it has written after {writes} ms");
    assert!(writes <= TAKE_OVER, "{writes} ms");
    (stream, name)
}

/// A thread of its own for a process that can stop as a whole, as by a signal: its tasks stand still, and its connections
/// stay open.
struct StoppableProcess {
    runtime: Handle,
    /// Ends the thread when it is dropped.
    _alive: oneshot::Sender<()>,
}

impl StoppableProcess {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (alive, ended) = oneshot::channel();
        let process = Self {
            runtime: runtime.handle().clone(),
            _alive: alive,
        };
        thread::spawn(move || runtime.block_on(ended));
        process
    }

    /// Stops it until what is returned is dropped.
    async fn stop(&self) -> Sender<()> {
        let (resume, resumed) = channel::<()>();
        let (stopping, stopped) = oneshot::channel();
        self.runtime.spawn(async move {
            let _ = stopping.send(());
            let _ = resumed.recv();
        });
        soon(stopped).await.expect("it stops");
        resume
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_stopped_is_followed_and_refused_when_it_goes_on() {
    let mut server = LinkedServer::start("stopped").await;
    let harness = &mut server.harness;
    let id = harness.webhook(1).await;
    let process = StoppableProcess::start();
    let first = {
        let _inside = process.runtime.enter();
        harness.start_on_database(&server.url)
    };
    let (old, name) = harness.listening().await;
    first.until_checkpoint(10).await;
    let second = harness.start().await;
    second.until_ready(|_, body| body["standby"] == true).await;

    let since = database_time(harness).await;
    let stopped = process.stop().await;
    send(&old, whole(&name, 11)).await;
    send(&old, freeze_and_confirm(&name, 11)).await;
    second.until_ready(|_, body| body["leads"] == true).await;
    let _served = write_slot_11(harness, &second, since).await;

    drop(stopped);
    first.until_ready(|_, body| body["standby"] == true).await;
    let sent = harness.bodies(3).await;
    let sequences: Vec<_> = sent.iter().map(|body| body["sequence"].as_u64()).collect();
    assert_eq!(sequences, [1, 2, 3].map(Some));
    let stored = harness
        .store
        .deliveries(&Access::All, &id, DeliveryQuery::default(), 100);
    assert_eq!(stored.await.expect("read").expect("exists").len(), 3);
    soon(first.stop()).await;
    soon(second.stop()).await;
}

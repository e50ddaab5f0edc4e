//! Expectations of an indexer, its stream and its webhooks: what the harness brings is judged here.

use std::time::Duration;

use serde_json::Value;
use sluice_geyser::scripted::Connection;
use sluice_harness::indexer::{Indexer, IndexerHarness, send};
use sluice_testkit::{
    updates::{block, created, freeze_and_confirm},
    webhook_receiver::ReceivedRequest,
};
use tokio::time::sleep;

/// How long what must not come is waited for.
const QUIET: Duration = Duration::from_millis(100);

/// What each test expects of its surroundings.
pub(crate) trait Surroundings {
    /// Opens the first connection, on which slot 10 is confirmed, and returns the name of its slots filter.
    async fn listening(&mut self) -> (Connection, String);

    /// What was received, in order of arrival, once there is so much, all of it signed with a webhook's secret.
    async fn received(&self, count: usize) -> Vec<ReceivedRequest>;

    /// The bodies received, by webhook and sequence, once there are so many. No more must come soon.
    async fn bodies(&self, count: usize) -> Vec<Value>;
}

impl Surroundings for IndexerHarness {
    async fn listening(&mut self) -> (Connection, String) {
        let (connection, request) = self.accept().await;
        assert_eq!(request.from_slot, None, "it starts with what comes");
        let name = request.slots.expect("slots are always asked for");
        send(&connection, [created(&name, 10), block(10)]).await;
        send(&connection, freeze_and_confirm(&name, 10)).await;
        (connection, name)
    }

    async fn received(&self, count: usize) -> Vec<ReceivedRequest> {
        let received = self.receiver.until(count).await.expect("all come");
        let faults = self.receiver.faults();
        assert!(faults.is_empty(), "the receiver refused: {faults:?}");
        received
    }

    async fn bodies(&self, count: usize) -> Vec<Value> {
        self.received(count).await;
        sleep(QUIET).await;
        let received = self.received(count).await;
        let mut bodies: Vec<Value> = received
            .iter()
            .map(|request| serde_json::from_slice(&request.body).expect("JSON"))
            .collect();
        assert_eq!(bodies.len(), count, "{bodies:#?}");
        bodies.sort_by_key(|body| {
            let webhook = body["webhookId"].as_str().map(str::to_owned);
            (webhook, body["sequence"].as_u64())
        });
        bodies
    }
}

/// How a test expects an indexer to end.
pub(crate) trait Ending {
    /// It ends in order, without an error.
    async fn stop(self);

    /// It runs, and is killed.
    async fn kill(self);
}

impl Ending for Indexer {
    async fn stop(self) {
        self.end().await.expect("stops cleanly");
    }

    async fn kill(self) {
        self.abort().await.expect("it runs until it is killed");
    }
}

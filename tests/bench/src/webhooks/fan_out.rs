//! Fan-out: messages per second, stored and delivered, of one hot program that a hundred webhooks watch.

use std::{sync::Arc, time::Duration};

use sluice_store::{Batch, Commitment, Filters, Store};
use sluice_testkit::figure::{Figure, Limit};
use sluice_webhook_client::{Client, Reach};
use tokio::sync::Notify;

use super::{
    deliveries::{DEADLINE, deliver, median},
    queue::{Queue, pool_write},
    receiver::{Keeping, Receivers},
};

/// Webhooks that watch the program.
const WEBHOOKS: usize = 100;

/// Events of a slot, of which each webhook gets each.
const EVENTS: u64 = 100;

/// Slots of one round.
const SLOTS: u64 = 4;

/// Messages of one round.
const MESSAGES: u64 = SLOTS * EVENTS * 100;

/// Rounds, of which the one in the middle counts; the first one opens connections.
const ROUNDS: usize = 3;

/// Measures a webhook's messages posted alone and in batches.
///
/// # Errors
/// When something does not start or does not answer.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    Ok(vec![
        Figure::new(
            "one program to 100 webhooks, stored and delivered",
            measure(None).await?.round(),
            "messages/s",
            Limit::None,
        ),
        Figure::new(
            "the same in batches",
            measure(Some(Batch::default())).await?.round(),
            "messages/s",
            Limit::None,
        ),
    ])
}

/// Messages per second, from the storing of the first until the last is recorded.
async fn measure(batch: Option<Batch>) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let keeping = match batch {
        Some(_) => Keeping::CountBatched,
        None => Keeping::Count,
    };
    let receivers = Receivers::start(WEBHOOKS, keeping)?;
    let store = Store::open(&folder.path().join("sluice.db")).await?;
    let program = pool_write(0, 0).owner;
    let mut queue = Queue::create_with(store, &receivers.urls(), |_, new| {
        new.definition.commitment = Commitment::Confirmed;
        new.definition.batch = batch;
        new.definition.filters = Filters {
            programs: vec![program],
            ..Filters::default()
        };
    })
    .await?;
    let client = Client::new(DEADLINE, Reach::PublicAndLoopback)?;
    let mut rates = Vec::new();
    for round in 0..=ROUNDS {
        let took = take_round(&mut queue, &receivers, &client).await?;
        if round > 0 {
            rates.push(rate(took));
        }
    }
    queue.store.close().await;
    Ok(median(rates))
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn rate(took: Duration) -> f64 {
    MESSAGES as f64 / took.as_secs_f64()
}

/// Stores the messages of some slots while they are delivered, until everything is recorded; says how long it took.
async fn take_round(
    queue: &mut Queue,
    receivers: &Receivers,
    client: &Client,
) -> anyhow::Result<Duration> {
    let (store, stored) = (queue.store.clone(), Arc::new(Notify::new()));
    let inserted = Arc::clone(&stored);
    let storing = async {
        for _ in 0..SLOTS {
            let messages = queue.messages(0, EVENTS);
            queue.store(&messages).await?;
            stored.notify_one();
        }
        Ok(())
    };
    deliver(&store, (receivers, MESSAGES), client, inserted, storing).await
}

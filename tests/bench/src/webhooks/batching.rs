//! Messages per second in batches to one receiver that is 50 ms away.

use std::time::Duration;

use sluice_store::{Batch, Commitment, Store};
use sluice_testkit::{
    figure::{Figure, Limit},
    webhook_receiver::Reply,
};
use sluice_webhook_client::{Client, Reach};

use super::{
    deliveries::{DEADLINE, Owed, deliver, median},
    queue::Queue,
    receiver::{Keeping, Manners, Receivers},
};

/// From a request to its answer.
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// Messages of one round.
const MESSAGES: u64 = 50_000;

/// Rounds, of which the one in the middle counts; the first one opens connections.
const ROUNDS: usize = 3;

/// Five hundred in one POST, as many as there may be.
const BATCH: Batch = Batch {
    max_messages: sluice_store::MAX_BATCH_MESSAGES,
    max_bytes: sluice_store::MAX_BATCH_BYTES,
    max_wait: Duration::from_millis(100),
};

/// Measures deliveries in batches, leased, signed, posted and recorded.
///
/// # Errors
/// When something does not start or does not answer.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let far = Manners {
        odd: 0,
        odd_reply: Reply::Accept,
        reply: Reply::AcceptAfter(ROUND_TRIP),
    };
    let receivers = Receivers::start_with(1, &far, Keeping::CountBatched)?;
    let store = Store::open(&folder.path().join("sluice.db")).await?;
    let mut queue = Queue::create_with(store, &receivers.urls(), |_, new| {
        new.definition.commitment = Commitment::Confirmed;
        new.definition.batch = Some(BATCH);
    })
    .await?;
    let client = Client::new(DEADLINE, Reach::PublicAndLoopback)?;
    let mut rates = Vec::new();
    for round in 0..=ROUNDS {
        queue.owe(MESSAGES).await?;
        let (to, owed) = ((&receivers, MESSAGES), Owed::default());
        let took = deliver(&queue.store, to, &client, owed, async { Ok(()) }).await?;
        if round > 0 {
            rates.push(rate(took));
        }
    }
    queue.store.close().await;
    Ok(vec![Figure::new(
        "messages in batches to one receiver 50 ms away, SQLite",
        median(rates).round(),
        "messages/s",
        Limit::AtLeast(10_000.0),
    )])
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn rate(took: Duration) -> f64 {
    MESSAGES as f64 / took.as_secs_f64()
}

//! Effect of 512 webhooks of one owner, whose receivers answer after 14 s, on the hundred of another.
//!
//! The same load runs on two dispatchers, of which one has those besides, with more messages due than it may lease, in turns.

use std::{path::Path, time::Duration};

use service_kit::Clock;
use sluice_store::{Access, ApiKeyHash, ApiKeyId, Commitment, NewApiKey, Scopes, Store, Timestamp};
use sluice_testkit::{
    figure::{Figure, Limit},
    webhook_receiver::Reply,
};

use super::{
    hanging::{MESSAGES, RECEIVERS, Row, Shape, compare},
    queue::Queue,
    receiver::{Keeping, Manners, Receivers},
};

/// Webhooks whose receivers are slow.
const SLOW: usize = 512;

/// Just within the deadline of an attempt: no breaker opens, and nothing is overloaded.
const ANSWERS_AFTER: Duration = Duration::from_secs(14);

/// Messages that wait for each of them: more than are attempted while it is measured.
const WAITING: u64 = 64;

/// Measures both rows.
///
/// # Errors
/// When something does not start, or a message does not arrive.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let alone = row(&folder.path().join("alone.db"), 0).await?;
    let beside = row(&folder.path().join("beside.db"), SLOW).await?;
    let compared = compare(alone, beside).await?;
    Ok(vec![
        Figure::new(
            "stored -> first byte, p99 of 100 receivers, median of rounds",
            compared.alone * 1_000.0,
            "ms",
            Limit::None,
        ),
        Figure::new(
            "the same beside 512 of another owner that answer after 14 s, median of pairs",
            compared.ratio,
            "ratio",
            Limit::AtMost(1.2),
        ),
    ])
}

/// A row with so many slow receivers before the others.
async fn row(database: &Path, slow: usize) -> anyhow::Result<Row> {
    let shape = Shape {
        receivers: slow + RECEIVERS,
        manners: Manners {
            odd: slow,
            odd_reply: Reply::AcceptAfter(ANSWERS_AFTER),
            reply: Reply::Accept,
        },
        written_from: u64::try_from(slow)?,
        unjudged: slow,
    };
    let receivers = Receivers::start_with(shape.receivers, &shape.manners, Keeping::Everything)?;
    let store = Store::open(database).await?;
    let (greedy, neighbour) = (owner(&store, 1).await?, owner(&store, 2).await?);
    let mut queue = Queue::create_with(store, &receivers.urls(), |number, new| {
        new.definition.commitment = Commitment::Confirmed;
        let owner = if number < slow { &greedy } else { &neighbour };
        new.owner = owner.clone();
    })
    .await?;
    if slow > 0 {
        for _ in 0..WAITING {
            let messages = queue.messages(0, u64::try_from(slow)?);
            queue.store(&messages).await?;
        }
    }
    // What a slot writes belongs to the neighbour alone.
    anyhow::ensure!(
        queue
            .messages(shape.written_from, MESSAGES)
            .iter()
            .all(|message| !queue.webhooks[..slow].contains(&message.webhook)),
        "the pools are not in the order of the webhooks"
    );
    Row::over(queue, receivers, shape)
}

/// An owner of webhooks.
async fn owner(store: &Store, number: u8) -> anyhow::Result<Access> {
    let key = store
        .create_api_key(&NewApiKey {
            id: ApiKeyId::from_random([number; 8]),
            name: format!("owner {number}"),
            hash: ApiKeyHash::of(&format!("key {number}")),
            created: Timestamp::from(Clock::system().now()),
            expires: None,
            scopes: Scopes::ALL,
        })
        .await?;
    Ok(Access::Key(key.id))
}

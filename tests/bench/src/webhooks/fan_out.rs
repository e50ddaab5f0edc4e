//! Fan-out: messages per second, stored and delivered, of one hot program that a hundred webhooks watch; against a store that keeps a
//! body for each of them.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use cpmm::ids;
use futures::try_join;
use sluice_geyser::AccountUpdate;
use sluice_indexer::{ingest::pieces::Pieces, slots::SlotEvent};
use sluice_store::{Batch, BodyTemplate, Commitment, EventKind, Filters, NewMessage, Store};
use sluice_testkit::figure::{Figure, Limit};
use sluice_webhook_client::{Client, Reach};

use super::{
    deliveries::{DEADLINE, Owed, deliver, median},
    pool_swap::pool_swap,
    queue::{Queue, Written, pool_write},
    receiver::{Keeping, Receivers},
};

/// What a hot program does in each slot.
#[derive(Clone, Copy)]
struct HotProgram {
    kind: EventKind,
    /// Events, of which each webhook gets each.
    events: u64,
    /// The one of this number in a slot.
    event: fn(u64, u64) -> SlotEvent,
}

/// A slot of transactions, of which all that each says is sent.
const SWAPS: HotProgram = HotProgram {
    kind: EventKind::Transaction,
    events: EVENTS,
    event: |slot, number| SlotEvent::Transaction(Box::new(pool_swap(slot, number))),
};

/// A slot of writes of pools, the shortest accounts that an exchange has much to do with.
const POOLS: HotProgram = HotProgram {
    kind: EventKind::AccountChange,
    events: EVENTS,
    event: |slot, number| SlotEvent::Account(pool_write(slot, number)),
};

/// A slot of writes of accounts as long as order books are.
const LONG: HotProgram = HotProgram {
    kind: EventKind::AccountChange,
    events: 10,
    event: |slot, number| {
        SlotEvent::Account(AccountUpdate {
            data: vec![7; 64 << 10].into(),
            ..pool_write(slot, number)
        })
    },
};

/// Where the number of a message is in its body.
const NUMBER: &str = "\"sequence\":0";

/// Webhooks that watch the program.
const WEBHOOKS: usize = 100;

/// Events of a slot, of which each webhook gets each.
const EVENTS: u64 = 100;

/// Slots of one round.
const SLOTS: u64 = 4;

/// Rounds of each, in turns, of which the one in the middle counts. One more before them opens connections.
const ROUNDS: usize = 5;

/// Measures a webhook's messages posted alone and in batches.
///
/// # Errors
/// When something does not start or does not answer.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let swaps = delivered(SWAPS).await?;
    let pools = delivered(POOLS).await?;
    let usual = stored(POOLS).await?;
    let long = stored(LONG).await?;
    Ok(vec![
        rate(
            "one program's transactions to 100 webhooks, stored and delivered",
            swaps.alone,
        ),
        rate(
            "one program's transactions to 100 webhooks, in batches",
            swaps.batched,
        ),
        against(
            "transactions in batches, against a body stored and posted for each webhook",
            swaps.batched_against_own_body,
            Limit::AtLeast(3.0),
        ),
        rate(
            "one program's pools to 100 webhooks, stored and delivered",
            pools.alone,
        ),
        rate(
            "one program's pools to 100 webhooks, in batches",
            pools.batched,
        ),
        against(
            "pools in batches, against a body stored and posted for each webhook",
            pools.batched_against_own_body,
            Limit::AtLeast(3.0),
        ),
        rate("one program's pools to 100 webhooks, stored", usual.once),
        against(
            "pools stored, against a body stored for each webhook",
            usual.once / usual.for_each,
            Limit::None,
        ),
        rate("64 KiB to 100 webhooks, stored", long.once),
        against(
            "64 KiB to 100 webhooks, stored, against a body stored for each webhook",
            long.once / long.for_each,
            Limit::AtLeast(3.0),
        ),
    ])
}

fn rate(figure: &'static str, rate: f64) -> Figure {
    Figure::new(figure, rate.round(), "messages/s", Limit::None)
}

fn against(figure: &'static str, ratio: f64, limit: Limit) -> Figure {
    Figure::new(figure, ratio, "times", limit)
}

/// Messages per second that are stored and delivered.
struct Delivered {
    alone: f64,
    batched: f64,
    /// How many times those that are posted alone and each have a body of their own.
    batched_against_own_body: f64,
}

/// Measures all ways in turns, so that they meet the same other work on the machine.
async fn delivered(program: HotProgram) -> anyhow::Result<Delivered> {
    let folder = tempfile::tempdir()?;
    let database = |name| folder.path().join(name);
    let mut own_body = Way::open(&database("own-body"), program, None, with_own_body).await?;
    let mut alone = Way::open(&database("alone"), program, None, as_it_is).await?;
    let batch = Some(Batch::default());
    let mut batched = Way::open(&database("batched"), program, batch, as_it_is).await?;
    let (mut rates_alone, mut rates_batched, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let of_own_body = own_body.rate_of_round().await?;
        let of_alone = alone.rate_of_round().await?;
        let of_batched = batched.rate_of_round().await?;
        if round > 0 {
            rates_alone.push(of_alone);
            rates_batched.push(of_batched);
            ratios.push(of_batched / of_own_body);
        }
    }
    for way in [own_body, alone, batched] {
        way.queue.store.close().await;
    }
    Ok(Delivered {
        alone: median(rates_alone),
        batched: median(rates_batched),
        batched_against_own_body: median(ratios),
    })
}

/// Messages per second that are stored.
struct Stored {
    /// What their bodies have in common being stored once,
    once: f64,
    /// and for each of them.
    for_each: f64,
}

/// Measures both in turns, so that they meet the same other work on the machine.
async fn stored(program: HotProgram) -> anyhow::Result<Stored> {
    let folder = tempfile::tempdir()?;
    let urls = urls();
    let open = async |name| hot_queue(&folder.path().join(name), program, &urls, None).await;
    let (mut once, mut for_each) = (open("once").await?, open("for-each").await?);
    let (mut rates_once, mut rates_for_each) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        rates_once.push(store_slot(&mut once, program, as_it_is).await?);
        rates_for_each.push(store_slot(&mut for_each, program, with_own_body).await?);
    }
    once.store.close().await;
    for_each.store.close().await;
    Ok(Stored {
        once: median(rates_once),
        for_each: median(rates_for_each),
    })
}

/// Endpoints to which nothing is sent.
fn urls() -> Vec<String> {
    vec!["http://127.0.0.1:1/hook".to_owned(); WEBHOOKS]
}

/// Stores the messages of one slot; returns how many a second.
async fn store_slot(
    queue: &mut Queue,
    program: HotProgram,
    adjust: impl Fn(NewMessage) -> NewMessage,
) -> anyhow::Result<f64> {
    let messages = slot_of(queue, program);
    let mut took = Duration::ZERO;
    let count = messages.len();
    for piece in Pieces::of(messages.into_iter().map(&adjust)) {
        let begun = Instant::now();
        queue.store(&piece.messages).await?;
        took += begun.elapsed();
    }
    Ok(per_second(count, took))
}

const fn as_it_is(message: NewMessage) -> NewMessage {
    message
}

/// The message with a body that it shares with no other.
fn with_own_body(message: NewMessage) -> NewMessage {
    let body = message.body.with_sequence(0);
    let (beginning, end) = body.split_once(NUMBER).unwrap_or((&body, ""));
    let beginning = format!("{beginning}{}", NUMBER.trim_end_matches('0'));
    NewMessage {
        body: BodyTemplate::new(beginning, end.into()),
        ..message
    }
}

/// A way to store and deliver what one program emits.
struct Way {
    queue: Queue,
    program: HotProgram,
    receivers: Receivers,
    client: Client,
    adjust: fn(NewMessage) -> NewMessage,
}

impl Way {
    async fn open(
        database: &Path,
        program: HotProgram,
        batch: Option<Batch>,
        adjust: fn(NewMessage) -> NewMessage,
    ) -> anyhow::Result<Self> {
        let keeping = match batch {
            Some(_) => Keeping::CountBatched,
            None => Keeping::Count,
        };
        let receivers = Receivers::start(WEBHOOKS, keeping)?;
        Ok(Self {
            queue: hot_queue(database, program, &receivers.urls(), batch).await?,
            program,
            receivers,
            client: Client::new(DEADLINE, Reach::PublicAndLoopback)?,
            adjust,
        })
    }

    /// Messages per second, from the storing of the first until the last is recorded.
    async fn rate_of_round(&mut self) -> anyhow::Result<f64> {
        let slots = (0..SLOTS).map(|_| slot_of(&mut self.queue, self.program).into_iter());
        let slots = slots.map(|messages| messages.map(self.adjust).collect());
        let slots: Vec<Vec<NewMessage>> = slots.collect();
        let count = slots.iter().map(Vec::len).sum();
        let took = self.take_round(slots, u64::try_from(count)?).await?;
        Ok(per_second(count, took))
    }

    /// Stores so many messages of some slots as the indexer does, while they are delivered, until everything is recorded; says
    /// how long it took.
    async fn take_round(
        &self,
        slots: Vec<Vec<NewMessage>>,
        count: u64,
    ) -> anyhow::Result<Duration> {
        let owed = Owed::default();
        let (to_lease, dispatcher) = (Arc::clone(&owed.to_lease), owed.submissions.capacity());
        let submit = async |written: Option<Written>| {
            if let Some(written) = written {
                written.submit(&to_lease).await?;
            }
            anyhow::Ok(())
        };
        let storing = async {
            // One piece is flushed to the disk while the next is written.
            let mut written = None;
            for piece in slots.into_iter().flat_map(Pieces::of) {
                let writing = self.queue.write(&piece.messages, &dispatcher);
                let (next, ()) = try_join!(writing, submit(written.take()))?;
                written = Some(next);
            }
            submit(written).await
        };
        let receivers = (&self.receivers, count);
        deliver(&self.queue.store, receivers, &self.client, owed, storing).await
    }
}

/// A store with a webhook for each URL, all of which watch the program.
async fn hot_queue(
    database: &Path,
    program: HotProgram,
    urls: &[String],
    batch: Option<Batch>,
) -> anyhow::Result<Queue> {
    Queue::create_with(Store::open(database).await?, urls, |_, new| {
        new.definition.commitment = Commitment::Confirmed;
        new.definition.batch = batch;
        new.definition.events = [program.kind].into_iter().collect();
        new.definition.filters = Filters {
            programs: vec![ids::PROGRAM_ID],
            ..Filters::default()
        };
    })
    .await
}

/// The messages of one more slot.
fn slot_of(queue: &mut Queue, program: HotProgram) -> Vec<NewMessage> {
    queue.messages_of(|slot| {
        let numbers = 0..program.events;
        numbers
            .map(|number| (program.event)(slot, number))
            .collect()
    })
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

//! Latency of an event, from the stream to the first byte of its POST.
//!
//! A whole indexer over a database file is fed over gRPC with 1,000 events a second in slots of 400 ms, all of which can be emitted
//! at once when their slot is sealed or confirmed, and with a tenth of them. Beside it the bare client shows how long the POSTs of a
//! slot take on the same machine when nothing else is done.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde::Deserialize;
use sluice_geyser::{
    BlockMeta, Body, SlotStatus, SlotUpdate, Update,
    scripted::{Connection, ScriptedServer},
};
use sluice_indexer::delivery::limits::MAX_IN_FLIGHT;
use sluice_store::{Commitment, Store};
use sluice_testkit::figure::{Figure, Limit};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{
    bare::{self, EndpointRequests, Prepared},
    indexer::Indexer,
    queue::{Queue, pool_write},
    receiver::{Arrival, Keeping, Receivers},
};

/// Webhooks, each with a receiver of its own.
const WEBHOOKS: usize = 8;

/// Events of a slot of 400 ms: 1,000 in a second, and a tenth of that.
const BUSY: Rate = Rate {
    tick: Duration::from_millis(1),
    events: 400,
};
const CALM: Rate = Rate {
    tick: Duration::from_millis(10),
    events: 40,
};

/// Slots that warm up connections and caches, and are not counted.
const WARM: u64 = 5;

/// Slots that count.
const SLOTS: u64 = 25;

/// How many slots later a slot is confirmed.
const LAG: u64 = 2;

/// Slot in which the chain begins.
const FIRST: u64 = 1_000;

/// How long a step may take unless something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much happens.
#[derive(Clone, Copy)]
struct Rate {
    /// Between two events.
    tick: Duration,
    /// In a slot.
    events: u64,
}

/// When something was sent.
#[derive(Default)]
struct Sent {
    /// Writes of accounts, by slot and pool.
    writes: HashMap<(u64, String), Instant>,
    /// The status of a slot after which its events can be emitted: at processed the one that seals it.
    emittable: HashMap<u64, Instant>,
}

/// Times from two moments to the first byte of the POST, of every event that counts.
struct Latencies {
    from_emittable: Vec<Duration>,
    from_write: Vec<Duration>,
}

/// What is needed of a body.
#[derive(Deserialize)]
struct Payload {
    slot: u64,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    pubkey: String,
}

/// Measures webhooks at processed and at confirmed, the default.
///
/// # Errors
/// When something does not start, or an event does not arrive.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let processed = measure(Commitment::Processed, BUSY).await?;
    let confirmed = measure(Commitment::Confirmed, BUSY).await?;
    let calm = measure(Commitment::Confirmed, CALM).await?;
    let bare = bare_client().await?;
    let figure = |figure, latencies: &[Duration], permille, limit| {
        let millis = permille_of(latencies, permille).as_secs_f64() * 1_000.0;
        Figure::new(figure, millis, "ms", limit)
    };
    Ok(vec![
        figure(
            "slot sealed on the stream -> first byte, p50 at 1,000/s",
            &processed.from_emittable,
            500,
            Limit::AtMost(10.0),
        ),
        figure(
            "slot sealed on the stream -> first byte, p99 at 1,000/s",
            &processed.from_emittable,
            990,
            Limit::AtMost(50.0),
        ),
        figure(
            "update on the stream -> first byte, its slot's rest included, p50",
            &processed.from_write,
            500,
            Limit::None,
        ),
        figure(
            "slot confirmed on the stream -> first byte, p50 at 1,000/s",
            &confirmed.from_emittable,
            500,
            Limit::AtMost(10.0),
        ),
        figure(
            "slot confirmed on the stream -> first byte, p99 at 1,000/s",
            &confirmed.from_emittable,
            990,
            Limit::AtMost(25.0),
        ),
        figure(
            "slot confirmed on the stream -> first byte, p50 at 100/s",
            &calm.from_emittable,
            500,
            Limit::AtMost(10.0),
        ),
        figure(
            "slot confirmed on the stream -> first byte, p99 at 100/s",
            &calm.from_emittable,
            990,
            Limit::AtMost(25.0),
        ),
        figure(
            "the POSTs of a slot by the bare client, all at once -> first byte, p50",
            &bare,
            500,
            Limit::None,
        ),
        figure(
            "the POSTs of a slot by the bare client, all at once -> first byte, p99",
            &bare,
            990,
            Limit::None,
        ),
    ])
}

/// From the moment when the bare client may send what a slot has made, to the first byte of each.
async fn bare_client() -> anyhow::Result<Vec<Duration>> {
    let folder = tempfile::tempdir()?;
    let receivers = Receivers::start(WEBHOOKS, Keeping::Everything)?;
    let store = Store::open(&folder.path().join("sluice.db")).await?;
    let urls = receivers.urls();
    let mut queue = Queue::create(store.clone(), &urls, Commitment::Confirmed).await?;
    let messages = queue.messages(0, BUSY.events);
    let mut endpoints = Vec::new();
    for (webhook, address) in queue.webhooks.iter().zip(receivers.addresses()) {
        let secrets = queue.secrets(webhook).await?;
        let own = messages
            .iter()
            .filter(|message| message.webhook == *webhook);
        let requests = own.map(|message| Prepared::new(message, &secrets, *address));
        let requests = requests.collect::<Result<_, _>>()?;
        endpoints.push(EndpointRequests::new(*address, requests)?);
    }
    let at_once = usize::try_from(MAX_IN_FLIGHT)?;
    let client = bare::client(at_once)?;
    let mut slots = interval(BUSY.tick * u32::try_from(BUSY.events)?);
    let mut latencies = Vec::new();
    for number in 0..WARM + SLOTS {
        slots.tick().await;
        let begun = Instant::now();
        bare::send_all(&client, &endpoints, at_once).await?;
        let arrivals = receivers.take();
        if number >= WARM {
            let times = arrivals.iter().map(|arrival| arrival.at - begun);
            latencies.extend(times);
        }
    }
    store.close().await;
    Ok(latencies)
}

async fn measure(commitment: Commitment, rate: Rate) -> anyhow::Result<Latencies> {
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("sluice.db");
    let receivers = Receivers::start(WEBHOOKS, Keeping::Everything)?;
    let store = Store::open(&database).await?;
    Queue::create(store.clone(), &receivers.urls(), commitment).await?;
    store.close().await;

    let mut server = ScriptedServer::start().await?;
    let indexer = Indexer::start(server.endpoint().url.as_str(), &database)?;
    let mut connection = timeout(PATIENCE, server.accept()).await?;
    let request = timeout(PATIENCE, connection.received()).await?;
    let slots = request.and_then(|received| received.request.slots);
    let slots = slots.context("the indexer asks for no slots")?;
    let sent = play(&connection, &slots, commitment, rate).await?;
    receivers.until((WARM + SLOTS) * rate.events).await?;
    indexer.stop().await?;
    latencies(&sent, &receivers.take(), rate)
}

/// Slots pass, each full of writes to pools, and each confirmed two slots later.
async fn play(
    connection: &Connection,
    filter: &str,
    commitment: Commitment,
    rate: Rate,
) -> anyhow::Result<Sent> {
    let mut sent = Sent::default();
    let mut ticks = interval(rate.tick);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    // The indexer takes what comes from its first whole slot on.
    connection.send(block(FIRST)).await?;
    for status in [SlotStatus::Processed, SlotStatus::Confirmed] {
        connection.send(slot(filter, FIRST, status)).await?;
    }
    let last = FIRST + WARM + SLOTS;
    for number in FIRST + 1..=last + LAG {
        connection
            .send(slot(filter, number, SlotStatus::CreatedBank))
            .await?;
        for event in 0..rate.events {
            ticks.tick().await;
            if number > last {
                continue;
            }
            let write = pool_write(number, event);
            let key = (number, write.pubkey.to_string());
            sent.writes.insert(key, Instant::now());
            connection
                .send(update("accounts", Body::Account(write)))
                .await?;
        }
        connection.send(block(number)).await?;
        let confirmed = Some(number - LAG).filter(|slot| *slot > FIRST);
        let emittable = match commitment {
            Commitment::Processed => Some(number),
            _ => confirmed,
        };
        sent.emittable
            .extend(emittable.map(|slot| (slot, Instant::now())));
        connection
            .send(slot(filter, number, SlotStatus::Processed))
            .await?;
        if let Some(confirmed) = confirmed {
            connection
                .send(slot(filter, confirmed, SlotStatus::Confirmed))
                .await?;
        }
    }
    Ok(sent)
}

fn latencies(sent: &Sent, arrivals: &[Arrival], rate: Rate) -> anyhow::Result<Latencies> {
    let (mut from_emittable, mut from_write) = (Vec::new(), Vec::new());
    for arrival in arrivals {
        let payload: Payload = serde_json::from_slice(&arrival.body)?;
        if payload.slot <= FIRST + WARM {
            continue;
        }
        let emittable = sent
            .emittable
            .get(&payload.slot)
            .context("an unknown slot")?;
        let write = sent.writes.get(&(payload.slot, payload.data.pubkey));
        let write = write.context("an unknown event")?;
        from_emittable.push(arrival.at.saturating_duration_since(*emittable));
        from_write.push(arrival.at.saturating_duration_since(*write));
    }
    let expected = usize::try_from(SLOTS * rate.events)?;
    ensure!(
        from_emittable.len() == expected,
        "{} of {expected} events arrived",
        from_emittable.len()
    );
    Ok(Latencies {
        from_emittable,
        from_write,
    })
}

fn permille_of(latencies: &[Duration], part: usize) -> Duration {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * part / 1_000).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(Duration::MAX)
}

fn block(slot: u64) -> Update {
    let block = BlockMeta {
        slot,
        parent_slot: slot - 1,
        blockhash: format!("hash{slot}"),
        parent_blockhash: format!("hash{}", slot - 1),
        block_time: Some(1_767_225_600),
        block_height: Some(slot),
        executed_transaction_count: 1,
    };
    update("blocks_meta", Body::BlockMeta(block))
}

fn slot(filter: &str, slot: u64, status: SlotStatus) -> Update {
    let body = Body::Slot(SlotUpdate {
        slot,
        parent: Some(slot - 1),
        status,
        dead_error: None,
    });
    update(filter, body)
}

fn update(filter: &str, body: Body) -> Update {
    Update {
        filters: vec![filter.to_owned()],
        created_at: None,
        bank_id: None,
        body,
    }
}

//! Cost of account updates, from the bytes of the stream to a state that readers see.

use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use cpmm::ids;
use service_kit::Clock;
use sluice_chain_types::RawAccount;
use sluice_geyser::{
    AccountUpdate, Body, SlotStatus, SlotUpdate, Stream, Update,
    scripted::{ScriptedServer, wire_bytes},
};
use sluice_market::{QuoteCommitment, replay::Replay};
use sluice_testkit::{
    figure::{Figure, Limit},
    population::{Population, clock},
    updates::written,
    yellowstone_server::Preencoded,
};
use solana_signature::Signature;

/// Pools of the chain that is written to. A tenth of it trades.
const POOLS: u64 = 20_000;

/// Slots of one run.
const SLOTS: u64 = 40;

/// Swaps of one slot. Each writes a pool and two vaults; mainnet writes some 6,000 accounts in a slot.
const SWAPS: u64 = 2_000;

/// Runs. Of those from bytes the best counts, because the others were interrupted by something else on the machine;
/// through gRPC the median, because three threads on two cores meet in another way each time.
const RUNS: usize = 11;

/// Slot in which the chain begins.
const SLOT: u64 = 1_000;

/// Slots of the run in which time to a quote is measured.
const TIMED_SLOTS: u64 = 500;

/// Swaps of each of them.
const TIMED_SWAPS: u64 = 200;

/// Updates sent at a time while it is measured, each millisecond: 15,000 in a second.
const TIMED_PIECE: usize = 15;

const CHAIN: Population = Population {
    pools: POOLS,
    per_pair: 4,
    quote_tokens: 1,
};

/// What updates cost.
///
/// # Errors
/// When the scripted server cannot be started, or the stream ends early.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let wire: Vec<Bytes> = row(SLOTS, SWAPS).into_iter().map(wire_bytes).collect();
    let written = SLOTS * SWAPS * 3;
    let applied = (0..RUNS).map(|_| apply(&wire)).min().unwrap_or_default();
    let (mut followed, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        // In turns, so that both meet the same other work on the machine.
        let drained = through_grpc(&wire, |_| {}).await?;
        let mut replay = begun();
        let took = through_grpc(&wire, |update| put(&mut replay, update)).await?;
        require_followed(&replay);
        followed.push(per_second(written, took));
        ratios.push(drained.as_secs_f64() / took.as_secs_f64());
    }
    Ok(vec![
        Figure::new(
            "account updates applied, from wire bytes",
            per_second(written, applied).round(),
            "updates/s",
            Limit::AtLeast(500_000.0),
        ),
        Figure::new(
            "account updates through gRPC",
            median(followed).round(),
            "updates/s",
            Limit::None,
        ),
        Figure::new(
            "the same against draining the stream",
            median(ratios),
            "ratio",
            Limit::AtLeast(0.85),
        ),
        Figure::new(
            "a slot's last update to its quotes, p99 at 15,000/s",
            time_to_quote().await?.as_secs_f64() * 1_000.0,
            "ms",
            Limit::AtMost(1.0),
        ),
    ])
}

/// From the sending of the message that completes a slot to the moment when readers see the slot: the time that 99 of
/// 100 slots do not exceed. Before that message a quote of the slot would be torn, so there is none.
async fn time_to_quote() -> anyhow::Result<Duration> {
    let mut server = ScriptedServer::start().await?;
    let request = sluice_geyser::Request {
        slots: Some("slots".to_owned()),
        ..sluice_geyser::Request::default()
    };
    let mut stream = Stream::open(&server.endpoint(), request).await?;
    let connection = server.accept().await;
    let mut replay = begun();
    let updates = row(TIMED_SLOTS, TIMED_SWAPS);
    let sending = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        for piece in updates.chunks(TIMED_PIECE) {
            ticks.tick().await;
            for update in piece {
                let mut update = update.clone();
                update.created_at = Some(Clock::system().now());
                connection.send(update).await?;
            }
        }
        Ok::<_, sluice_geyser::scripted::ClientGone>(connection)
    });
    let mut times = Vec::new();
    while u64::try_from(times.len())? < TIMED_SLOTS {
        for update in stream.next_batch().await? {
            put(&mut replay, &update);
            if is_completion(&update) {
                let sent = update.created_at.context("it was stamped")?;
                times.push(sent.elapsed()?);
            }
        }
    }
    drop(sending.await??);
    times.sort_unstable();
    times
        .get(times.len() * 99 / 100)
        .copied()
        .context("slots were timed")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn is_completion(update: &Update) -> bool {
    matches!(&update.body, Body::Slot(slot) if slot.status == SlotStatus::Processed)
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred thousand")]
fn per_second(updates: u64, took: Duration) -> f64 {
    updates as f64 / took.as_secs_f64()
}

fn begun() -> Replay {
    let mut replay = Replay::begin(SLOT, CHAIN.accounts(SLOT));
    put(&mut replay, &status(SLOT, SlotStatus::Processed));
    replay
}

fn put(replay: &mut Replay, update: &Update) {
    replay.update(update).expect("the row is in order");
}

fn apply(wire: &[Bytes]) -> Duration {
    let mut replay = begun();
    let begun = Instant::now();
    for message in wire {
        let update = sluice_geyser::decode(message.clone());
        let update = update.expect("it was encoded by the same crate");
        put(&mut replay, &update.expect("it is an update"));
    }
    let took = begun.elapsed();
    require_followed(&replay);
    took
}

/// The last slot, with the last swap of it.
fn require_followed(replay: &Replay) {
    let view = replay.market().view(QuoteCommitment::Processed);
    let view = view.expect("the market follows");
    assert_eq!(view.slot().get(), SLOT + SLOTS);
    let pool = view.pool(&CHAIN.pool(trading(SLOTS, SWAPS - 1)));
    let fees = pool
        .expect("it is in the chain")
        .snapshot
        .pool
        .protocol_fees;
    assert_eq!(fees.token_0, SLOTS);
}

/// Time in which a client takes in all updates through gRPC.
async fn through_grpc(wire: &[Bytes], mut take: impl FnMut(&Update)) -> anyhow::Result<Duration> {
    let server = Preencoded::start(wire).await?;
    let request = sluice_geyser::Request {
        slots: Some("slots".to_owned()),
        ..sluice_geyser::Request::default()
    };
    let begun = Instant::now();
    let mut stream = Stream::open(server.endpoint(), request).await?;
    let mut waiting = wire.len();
    while waiting > 0 {
        for update in stream.next_batch().await? {
            waiting -= 1;
            take(&update);
        }
    }
    Ok(begun.elapsed())
}

/// Which pool the swap of this number trades in.
fn trading(slot: u64, swap: u64) -> u64 {
    (swap * 7_919 + slot * 104_729) % (POOLS / 10)
}

/// Slots full of swaps, as the stream reports them.
fn row(slots: u64, swaps: u64) -> Vec<Update> {
    let mut updates = Vec::new();
    let mut version = 0;
    for number in 1..=slots {
        let slot = SLOT + number;
        updates.push(status(slot, SlotStatus::CreatedBank));
        updates.push(write(slot, &mut version, clock(slot), None));
        for swap in 0..swaps {
            let transaction = signature(slot, swap);
            for account in CHAIN.swapped(trading(number, swap), number) {
                updates.push(write(slot, &mut version, account, Some(transaction)));
            }
        }
        updates.push(status(slot, SlotStatus::Processed));
        if number > 2 {
            updates.push(status(slot - 2, SlotStatus::Confirmed));
        }
    }
    updates
}

/// A signature that only the slot and the number of its swap make.
fn signature(slot: u64, swap: u64) -> Signature {
    let mut bytes = [7; 64];
    bytes[..8].copy_from_slice(&slot.to_le_bytes());
    bytes[8..16].copy_from_slice(&swap.to_le_bytes());
    Signature::from(bytes)
}

fn write(
    slot: u64,
    version: &mut u64,
    account: RawAccount,
    transaction: Option<Signature>,
) -> Update {
    *version += 1;
    let filter = match account.owner {
        ids::PROGRAM_ID => "pools",
        ids::SPL_TOKEN => "vaults-spl",
        _ => "clock",
    };
    let body = Body::Account(AccountUpdate {
        txn_signature: transaction,
        ..written(slot, *version, account)
    });
    update(filter, body)
}

fn status(slot: u64, status: SlotStatus) -> Update {
    let body = Body::Slot(SlotUpdate {
        slot,
        parent: Some(slot - 1),
        status,
        dead_error: None,
    });
    update("slots", body)
}

fn update(filter: &str, body: Body) -> Update {
    Update {
        filters: vec![filter.to_owned()],
        created_at: Some(Clock::system().now()),
        bank_id: None,
        body,
    }
}

//! Yellowstone server of the chaos: streams the script slot by slot, and replays every slot asked for.
//!
//! It filters as each subscriber asks, and never dies.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sluice_geyser::{
    Body, Endpoint, Request, Update,
    scripted::{ClientGone, Connection, ScriptedServer},
};
use sluice_testkit::filters;
use tokio::{sync::watch, task::AbortHandle, time::interval};

use super::script::{Block, ChainScript};

/// Time between two slots: a quarter of mainnet's, so that four times as much happens.
const SLOT_TIME: Duration = Duration::from_millis(100);

/// Everything reported so far.
#[derive(Default)]
struct Record {
    reported: Vec<Body>,
    blocks: Vec<Block>,
    eventful: bool,
    /// The newest slot reported.
    newest: u64,
}

/// The stream. Dropping it ends it.
pub struct Feed {
    endpoint: Endpoint,
    record: Arc<Mutex<Record>>,
    tasks: [AbortHandle; 2],
}

impl Drop for Feed {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Feed {
    /// Starts reporting the script of a seed, without events at first.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(seed: u64) -> io::Result<Self> {
        let server = ScriptedServer::start().await?;
        let endpoint = server.endpoint();
        let record = Arc::<Mutex<Record>>::default();
        let reported = watch::Sender::new(0);
        let accepting = tokio::spawn(accept(server, Arc::clone(&record), reported.clone()));
        let reporting = tokio::spawn(report(
            ChainScript::new(seed),
            Arc::clone(&record),
            reported,
        ));
        Ok(Self {
            endpoint,
            record,
            tasks: [accepting.abort_handle(), reporting.abort_handle()],
        })
    }

    /// How it is reached.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether anything happens in the slots to come.
    pub fn set_eventful(&self, eventful: bool) {
        lock(&self.record).eventful = eventful;
    }

    /// Every block with content so far.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        lock(&self.record).blocks.clone()
    }

    /// The newest slot reported.
    #[must_use]
    pub fn newest_slot(&self) -> u64 {
        lock(&self.record).newest
    }
}

/// What a server keeps of the slots that it can replay.
#[derive(Clone, Copy)]
enum Style {
    /// Everything as it was reported, blocks that died and were replaced included.
    AsReported,
    /// Each slot as it is by now, one after the other: the content of its last block, the block, its statuses.
    AsItIs,
}

impl Style {
    const ALL: [Self; 2] = [Self::AsReported, Self::AsItIs];
}

/// What is sent to a client that asks for everything since a slot.
fn replay(reported: &[Body], from: u64, style: Style) -> Vec<Body> {
    let missed = reported
        .iter()
        .filter(|body| slot_of(body) >= from)
        .cloned();
    match style {
        Style::AsReported => missed.collect(),
        Style::AsItIs => {
            let mut slots: BTreeMap<u64, Vec<Body>> = BTreeMap::new();
            for body in missed {
                let slot = slots.entry(slot_of(&body)).or_default();
                if is_content(&body) && slot.iter().any(|reported| !is_content(reported)) {
                    // Another block of the slot begins.
                    slot.clear();
                }
                slot.push(body);
            }
            slots.into_values().flatten().collect()
        }
    }
}

fn is_content(body: &Body) -> bool {
    !matches!(body, Body::Slot(_))
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn report(
    mut script: ChainScript,
    record: Arc<Mutex<Record>>,
    reported: watch::Sender<usize>,
) {
    let mut ticks = interval(SLOT_TIME);
    loop {
        ticks.tick().await;
        let mut record = lock(&record);
        let turn = script.turn(record.eventful);
        let newest = turn.reported.iter().map(slot_of).max();
        record.newest = record.newest.max(newest.unwrap_or(0));
        record.reported.extend(turn.reported);
        record.blocks.extend(turn.blocks);
        let len = record.reported.len();
        drop(record);
        reported.send_replace(len);
    }
}

async fn accept(
    mut server: ScriptedServer,
    record: Arc<Mutex<Record>>,
    reported: watch::Sender<usize>,
) {
    for number in 0_usize.. {
        let mut connection = server.accept().await;
        let style = Style::ALL[number % Style::ALL.len()];
        let (record, reported) = (Arc::clone(&record), reported.subscribe());
        tokio::spawn(async move {
            let Some(first) = connection.received().await else {
                return;
            };
            // Clients are killed all the time; the record goes on without them.
            let _ = serve(connection, first.request, style, &record, reported).await;
        });
    }
}

/// Serves one subscription until its client goes.
async fn serve(
    mut connection: Connection,
    mut request: Request,
    style: Style,
    record: &Mutex<Record>,
    mut reported: watch::Receiver<usize>,
) -> Result<(), ClientGone> {
    let (mut at, replayed) = {
        let record = lock(record);
        let from = request.from_slot.unwrap_or(u64::MAX);
        (record.reported.len(), replay(&record.reported, from, style))
    };
    for body in replayed {
        say(&connection, &request, body).await?;
    }
    loop {
        let news = {
            let record = lock(record);
            record.reported[at..].to_vec()
        };
        at += news.len();
        for body in news {
            say(&connection, &request, body).await?;
        }
        tokio::select! {
            more = reported.wait_for(|len| *len > at) => more.map(drop).map_err(|_| ClientGone)?,
            received = connection.received() => {
                let received = received.ok_or(ClientGone)?;
                if received.ping.is_none() {
                    request = received.request;
                }
            }
        }
    }
}

async fn say(connection: &Connection, request: &Request, body: Body) -> Result<(), ClientGone> {
    let filters = filters::names(request, &body);
    if filters.is_empty() {
        return Ok(());
    }
    let update = Update {
        filters,
        created_at: None,
        body,
    };
    connection.send(update).await
}

fn slot_of(body: &Body) -> u64 {
    match body {
        Body::Account(update) => update.slot,
        Body::Transaction(update) => update.slot,
        Body::Slot(update) => update.slot,
        Body::BlockMeta(update) => update.slot,
    }
}

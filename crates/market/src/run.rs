//! Market task: connects, joins the first snapshots, follows the slots, and replays after a lost stream.
//!
//! Where the slots that were missed cannot be replayed, it begins again.

mod catch_up;
#[cfg(test)]
mod tests;

use std::time::Duration;

use cpmm::ExchangeIds;
use service_kit::{Backoff, CancellationToken};
use sluice_chain_types::SlotStatus;
use sluice_geyser::{
    Assembled, Body, Servers, SlotStream, SlotUpdate, StreamError, Update,
    limits::LONGEST_RECONNECT_PAUSE,
};
use tokio::{
    sync::{mpsc, watch},
    task::{JoinError, JoinSet},
    time::{Instant, sleep, sleep_until},
};
use url::Url;

use self::catch_up::CatchUp;
use crate::{
    account_snapshot::AccountSnapshot,
    divergence::Divergence,
    market_tree::MarketTree,
    node_watcher,
    settings::Settings,
    snapshot_reader::{Progress, SnapshotError, SnapshotReader},
    subscription::request,
    view::Market,
};

/// Time without a sealed slot after which the stream is given up. The stream itself ends on silence;
/// this covers one that still pings but reports nothing of the chain. Longer than readers wait before
/// they refuse, so that a chain that halts does not cost a snapshot at once.
const NO_SLOT_TIMEOUT: Duration = Duration::from_secs(30);

/// Snapshots that may wait for the session: about as many as RPC calls are in flight.
const WAITING_SNAPSHOTS: usize = 32;

/// What the market reads: the stream's servers and the node.
pub(crate) struct Sources {
    exchange: ExchangeIds,
    pub(crate) servers: Servers,
    reader: SnapshotReader,
    /// The node, whose slot the market's is held against.
    rpc_url: Url,
    /// Whether to subscribe to the accounts of the whole chain that are closed.
    watch_closed: bool,
    /// Time without a slot after which a stream is given up.
    no_slot_timeout: Duration,
}

impl From<Settings> for Sources {
    fn from(settings: Settings) -> Self {
        Self {
            servers: Servers::new(settings.endpoints),
            exchange: settings.exchange,
            reader: SnapshotReader::new(
                settings.exchange,
                settings.rpc_url.clone(),
                settings.read_limits,
            ),
            rpc_url: settings.rpc_url,
            watch_closed: settings.watch_closed_accounts,
            no_slot_timeout: NO_SLOT_TIMEOUT,
        }
    }
}

/// Why a stream is over.
#[derive(Debug, thiserror::Error)]
enum SessionEnd {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the snapshot failed: {0}")]
    Snapshot(#[from] SnapshotError),
    #[error("the market left the chain: {0}")]
    Divergence(#[from] Divergence),
    #[error("a write of slot {0} came after the slot was complete")]
    Late(u64),
    #[error("no slot was completed for {} s", .0.as_secs())]
    NoSlot(Duration),
    #[error("reading the snapshot was ended: {0}")]
    Reader(#[from] JoinError),
}

impl SessionEnd {
    /// What readers are shown, who may be anybody: without the words of a server or a node, which may name a host. The log has
    /// them.
    fn shown(&self) -> String {
        match self {
            Self::Stream(StreamError::Connect(_)) => "the stream cannot be reached".to_owned(),
            Self::Stream(StreamError::Refused(_) | StreamError::TooManyKeys { .. }) => {
                "the stream refused the request".to_owned()
            }
            Self::Stream(_) => "the stream was lost".to_owned(),
            Self::Snapshot(error) => format!("reading the chain failed: {}", error.shown()),
            Self::Reader(_) => "reading the chain failed".to_owned(),
            Self::Divergence(_) | Self::Late(_) | Self::NoSlot(_) => self.to_string(),
        }
    }

    /// Whether what is known can be built on by replaying the slots that were missed.
    fn can_resume(&self) -> bool {
        matches!(self, Self::Stream(error) if !error.is_replay_unavailable())
    }

    /// Whether the same servers, asked differently, may do at once.
    fn is_replay_refused(&self) -> bool {
        matches!(self, Self::Stream(error) if error.is_replay_unavailable())
    }
}

/// Keeps `market` until `shutdown`.
pub(crate) async fn run(market: Market, sources: Sources, shutdown: CancellationToken) {
    tokio::select! {
        () = follow_chain(&market, &sources, &shutdown) => {}
        () = node_watcher::watch(&market, &sources.rpc_url) => {}
    }
    market.set_not_ready("the service is shutting down".to_owned());
}

async fn follow_chain(market: &Market, sources: &Sources, shutdown: &CancellationToken) {
    let mut backoff = Backoff::up_to(LONGEST_RECONNECT_PAUSE);
    let mut tree = MarketTree::new(sources.exchange);
    loop {
        let session = Session::open(market, sources, &mut tree, &mut backoff);
        let end = tokio::select! {
            () = shutdown.cancelled() => break,
            end = session => end,
        };
        market.set_not_ready(end.shown());
        if !end.can_resume() {
            tree = MarketTree::new(sources.exchange);
        }
        if end.is_replay_refused() {
            tracing::warn!(reason = %end, "slots are missing; reading the chain again");
            continue;
        }
        let pause = backoff.next_pause(rand::random());
        tracing::warn!(reason = %end, ?pause, "market lost; connecting again");
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = sleep(pause) => {}
        }
    }
}

/// How far the first read of the chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstRead {
    /// Waits for a slot that is delivered whole.
    AwaitingSlot,
    /// Under way.
    Reading,
    /// Every first snapshot is in the tree; or the tree did not need any.
    Done,
}

/// One stream, from the first slot to the loss.
struct Session<'a> {
    market: &'a Market,
    reader: &'a SnapshotReader,
    tree: &'a mut MarketTree,
    backoff: &'a mut Backoff,
    stream: SlotStream,
    first_read: FirstRead,
    calls: JoinSet<Result<(), SnapshotError>>,
    snapshots: (
        mpsc::Sender<AccountSnapshot>,
        mpsc::Receiver<AccountSnapshot>,
    ),
    /// How far the first read of the chain is.
    progress: (watch::Sender<Progress>, watch::Receiver<Progress>),
    no_slot_timeout: Duration,
    /// How far the stream must be before readers see anything.
    catch_up: CatchUp,
    last_slot_at: Instant,
    ready: bool,
}

impl<'a> Session<'a> {
    async fn open(
        market: &'a Market,
        sources: &'a Sources,
        tree: &'a mut MarketTree,
        backoff: &'a mut Backoff,
    ) -> SessionEnd {
        let shown = tree.processed_head().unwrap_or(0);
        let from_slot = tree.rewind();
        if from_slot.is_none() {
            // Slots and snapshots of a connection that was lost during the first read have a gap behind them.
            *tree = MarketTree::new(sources.exchange);
        }
        let request = request(&sources.exchange, sources.watch_closed, from_slot);
        let stream = match SlotStream::open(&sources.servers, request).await {
            Ok(stream) => stream,
            Err(error) => return error.into(),
        };
        market.set_not_ready(match from_slot {
            Some(slot) => format!("the market is replaying the chain from slot {slot}"),
            None => "the market is reading the chain".to_owned(),
        });
        let session = Self {
            market,
            reader: &sources.reader,
            tree,
            backoff,
            stream,
            first_read: match from_slot {
                Some(_) => FirstRead::Done,
                None => FirstRead::AwaitingSlot,
            },
            calls: JoinSet::new(),
            snapshots: mpsc::channel(WAITING_SNAPSHOTS),
            progress: watch::channel(Progress::default()),
            no_slot_timeout: sources.no_slot_timeout,
            catch_up: CatchUp::to(shown, market.ladder().node),
            last_slot_at: Instant::now(),
            ready: false,
        };
        session.follow().await
    }

    async fn follow(mut self) -> SessionEnd {
        loop {
            if let Err(end) = self.next_event().await {
                return end;
            }
        }
    }

    /// Waits for updates, a snapshot or the end of a call, and takes in whichever comes first.
    async fn next_event(&mut self) -> Result<(), SessionEnd> {
        let no_slot_at = self.last_slot_at + self.no_slot_timeout;
        tokio::select! {
            assembled = self.stream.next_batch() => {
                // Let go of together, when the slot that they complete is shown: hundreds of pieces of memory, which another
                // thread has allocated.
                let batch = assembled?;
                for assembled in &batch {
                    self.assembled(assembled)?;
                }
            }
            Some(snapshot) = self.snapshots.1.recv() => self.snapshot(snapshot),
            Some(done) = self.calls.join_next() => self.call_done(done?)?,
            Ok(()) = self.progress.1.changed(), if self.first_read == FirstRead::Reading => {
                let progress = self.progress.1.borrow_and_update().to_string();
                self.market.set_not_ready(progress);
            }
            () = sleep_until(no_slot_at) => return Err(SessionEnd::NoSlot(self.no_slot_timeout)),
        }
        Ok(())
    }

    fn assembled(&mut self, assembled: &Assembled) -> Result<(), SessionEnd> {
        match assembled {
            Assembled::Update(update) => self.update(update)?,
            Assembled::InForce { slot, .. } => self.begin_reading(*slot),
            Assembled::Replaced { slot } => self.slot(&SlotUpdate {
                slot: *slot,
                parent: None,
                status: SlotStatus::Dead,
                dead_error: None,
            })?,
            Assembled::Ahead { body, .. } => self.tree.ahead(body)?,
            Assembled::Void { slot } => self.tree.void(*slot),
            Assembled::Late { slot, .. } => return Err(SessionEnd::Late(*slot)),
        }
        Ok(())
    }

    /// Begins the first read of the chain, once it is known from which slot on every write is delivered.
    fn begin_reading(&mut self, slot: u64) {
        if self.first_read != FirstRead::AwaitingSlot {
            return;
        }
        self.first_read = FirstRead::Reading;
        let (reader, snapshots) = (self.reader.clone(), self.snapshots.0.clone());
        let progress = self.progress.0.clone();
        self.calls
            .spawn(async move { reader.everything(slot, snapshots, progress).await });
    }

    fn update(&mut self, update: &Update) -> Result<(), SessionEnd> {
        match &update.body {
            Body::Account(account) => self.tree.account(account)?,
            Body::Slot(slot) => self.slot(slot)?,
            // Transactions are not subscribed to, and a whole slot needs no metadata.
            Body::Transaction(_) | Body::BlockMeta(_) => {}
        }
        Ok(())
    }

    fn slot(&mut self, update: &SlotUpdate) -> Result<(), SessionEnd> {
        self.market.report_slot(update.slot);
        if update.status == SlotStatus::Finalized {
            self.market.report_finalized(update.slot);
        }
        if matches!(update.status, SlotStatus::Processed | SlotStatus::Dead) {
            self.catch_up.reach(update.slot);
        }
        // Nothing is sealed before the chain is read, which may take minutes.
        if self.first_read != FirstRead::Done && update.status == SlotStatus::Processed {
            self.last_slot_at = Instant::now();
        }
        if self.tree.slot(update)? {
            self.publish();
        }
        // What an open slot needs, of which something came ahead, may not exist before it is complete.
        if update.status == SlotStatus::Processed {
            self.fetch_missing();
        }
        Ok(())
    }

    fn snapshot(&mut self, snapshot: AccountSnapshot) {
        if self.first_read == FirstRead::Reading {
            self.tree.first_snapshot(snapshot);
        } else {
            self.tree.snapshot(snapshot);
            self.publish();
        }
    }

    fn call_done(&mut self, result: Result<(), SnapshotError>) -> Result<(), SessionEnd> {
        result?;
        if self.first_read == FirstRead::Reading {
            // The snapshots were sent before the call ended, so they are all in the channel.
            while let Ok(snapshot) = self.snapshots.1.try_recv() {
                self.tree.first_snapshot(snapshot);
            }
            self.first_read = FirstRead::Done;
            self.tree.first_snapshots_complete();
            // The node has gone on while the chain was read.
            self.catch_up.aim_at(self.market.ladder().node);
            let waiting = "the chain is read; waiting for the stream to reach it";
            tracing::info!("{waiting}");
            self.market.set_not_ready(waiting.to_owned());
            self.publish();
        }
        Ok(())
    }

    /// Shows readers what there is, once nothing is missing any more.
    fn publish(&mut self) {
        let Some(states) = self.tree.head_states() else {
            return;
        };
        let slot = states.processed.slot;
        self.last_slot_at = Instant::now();
        if !self.ready && self.catch_up.lacks(slot, self.market.ladder().node) {
            return;
        }
        self.market.publish(states);
        if !self.ready {
            self.ready = true;
            self.backoff.reset();
            // Before, whole slots wait, and nothing is gained by it.
            self.stream.give_ahead();
            self.announce();
        }
    }

    fn announce(&self) {
        tracing::info!(status = ?self.market.status(), "market ready");
        let states = self.tree.head_states();
        let incomplete = states
            .iter()
            .flat_map(|heads| heads.processed.state.incomplete());
        for (pool, reason) in incomplete {
            tracing::warn!(%pool, %reason, "pool cannot be quoted");
        }
    }

    /// Reads the accounts of new pools that the stream does not report. A failure leaves those pools out
    /// and nothing else, so it is tried again and ends nothing.
    fn fetch_missing(&mut self) {
        let Some(head) = self.tree.processed_head() else {
            return;
        };
        let keys = self.tree.take_missing();
        if keys.is_empty() {
            return;
        }
        let (reader, snapshots) = (self.reader.clone(), self.snapshots.0.clone());
        self.calls.spawn(async move {
            let mut backoff = Backoff::new();
            while let Err(error) = reader.accounts(&keys, head, &snapshots).await {
                tracing::warn!(%error, accounts = keys.len(), "accounts of new pools were not read");
                sleep(backoff.next_pause(rand::random())).await;
            }
            Ok(())
        });
    }
}

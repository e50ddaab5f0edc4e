//! The task that keeps the market: connect, join the first answers, follow the slots; after a loss,
//! replay what was missed, or begin again where that cannot be done.

#[cfg(test)]
mod tests;

use std::{convert::Infallible, time::Duration};

use service_kit::{Backoff, CancellationToken};
use sluice_geyser::{Body, Endpoint, SlotUpdate, Stream, StreamError, Update};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::{Instant, sleep, sleep_until},
};

use super::{
    ledger::{Answer, Divergence, Ledger},
    settings::Settings,
    snapshot::{SnapshotError, Snapshots},
    subscription::{Coverage, request},
    view::Market,
};

/// Time without a sealed slot after which the stream is given up. The stream itself ends on silence;
/// this covers one that still pings but tells nothing of the chain. Longer than readers wait before
/// they refuse, so that a chain that halts does not cost a snapshot at once.
const NO_SLOT_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers of RPC calls that may wait for the session: as many as calls are under way.
const WAITING_ANSWERS: usize = 8;

/// Where the market gets everything from.
pub(super) struct Sources {
    /// Streams in the order of preference; the next one is tried when one fails.
    endpoints: Vec<Endpoint>,
    snapshots: Snapshots,
    /// Whether to subscribe to the accounts of the whole chain that are closed.
    watch_closed: bool,
}

impl From<Settings> for Sources {
    fn from(settings: Settings) -> Self {
        Self {
            endpoints: settings.endpoints,
            snapshots: Snapshots::new(settings.rpc_url),
            watch_closed: settings.watch_closed_accounts,
        }
    }
}

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the snapshot failed: {0}")]
    Snapshot(#[from] SnapshotError),
    #[error("the market left the chain: {0}")]
    Divergence(#[from] Divergence),
    #[error("no slot was completed for {} s", NO_SLOT_TIMEOUT.as_secs())]
    NoSlot,
    #[error("reading the snapshot was ended: {0}")]
    Reader(#[from] JoinError),
}

impl Lost {
    /// Whether what is known can be built on by replaying the slots that were missed.
    fn can_resume(&self) -> bool {
        matches!(self, Self::Stream(error) if !error.is_replay_unavailable())
    }

    /// Whether the same server, asked differently, may do at once.
    fn is_replay_refused(&self) -> bool {
        matches!(self, Self::Stream(error) if error.is_replay_unavailable())
    }
}

/// Keeps `market` until `shutdown`.
pub(super) async fn run(market: Market, sources: Sources, shutdown: CancellationToken) {
    let mut backoff = Backoff::new();
    let mut ledger = Ledger::default();
    let mut endpoints = sources.endpoints.iter().cycle();
    let Some(mut endpoint) = endpoints.next() else {
        market.set_not_ready("no stream is configured".to_owned());
        return;
    };
    loop {
        let session = Session::open(&market, endpoint, &sources, &mut ledger, &mut backoff);
        let lost = tokio::select! {
            () = shutdown.cancelled() => break,
            lost = session => lost,
        };
        market.set_not_ready(lost.to_string());
        if !lost.can_resume() {
            ledger = Ledger::default();
        }
        if lost.is_replay_refused() {
            tracing::warn!(reason = %lost, "slots are missing; reading the chain again");
            continue;
        }
        let pause = backoff.next_pause(rand::random());
        tracing::warn!(reason = %lost, ?pause, "market lost; connecting again");
        endpoint = endpoints.next().unwrap_or(endpoint);
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = sleep(pause) => {}
        }
    }
    market.set_not_ready("the service is shutting down".to_owned());
}

/// How far the first read of the chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// Waits for a slot that is delivered whole.
    Waiting,
    /// Under way.
    Reading,
    /// Every answer is in the ledger; or the ledger did not need any.
    Read,
}

/// One connection, from the first slot to the loss.
struct Session<'a> {
    market: &'a Market,
    snapshots: &'a Snapshots,
    ledger: &'a mut Ledger,
    backoff: &'a mut Backoff,
    stream: Stream,
    coverage: Coverage,
    first: First,
    calls: JoinSet<Result<(), SnapshotError>>,
    answers: (mpsc::Sender<Answer>, mpsc::Receiver<Answer>),
    /// Slot that must be passed before readers see anything again: the last one they saw.
    catch_up_to: u64,
    last_slot_at: Instant,
    ready: bool,
}

impl<'a> Session<'a> {
    async fn open(
        market: &'a Market,
        endpoint: &Endpoint,
        sources: &'a Sources,
        ledger: &'a mut Ledger,
        backoff: &'a mut Backoff,
    ) -> Lost {
        let catch_up_to = ledger.heads().map_or(0, |(head, _)| head);
        let from_slot = ledger.rewind();
        let request = request(sources.watch_closed, from_slot);
        let stream = match Stream::open(endpoint, request).await {
            Ok(stream) => stream,
            Err(error) => return error.into(),
        };
        market.set_not_ready(match from_slot {
            Some(slot) => format!("the market is replaying the chain from slot {slot}"),
            None => "the market is reading the chain".to_owned(),
        });
        let session = Self {
            market,
            snapshots: &sources.snapshots,
            ledger,
            backoff,
            stream,
            coverage: Coverage::default(),
            first: match from_slot {
                Some(_) => First::Read,
                None => First::Waiting,
            },
            calls: JoinSet::new(),
            answers: mpsc::channel(WAITING_ANSWERS),
            catch_up_to,
            last_slot_at: Instant::now(),
            ready: false,
        };
        match session.follow().await {
            Ok(never) => match never {},
            Err(lost) => lost,
        }
    }

    async fn follow(mut self) -> Result<Infallible, Lost> {
        loop {
            let no_slot_at = self.last_slot_at + NO_SLOT_TIMEOUT;
            tokio::select! {
                updates = self.stream.next_batch() => {
                    for update in updates? {
                        self.update(&update)?;
                    }
                }
                Some(answer) = self.answers.1.recv() => self.answer(answer),
                Some(done) = self.calls.join_next() => self.call_done(done?)?,
                () = sleep_until(no_slot_at) => return Err(Lost::NoSlot),
            }
        }
    }

    fn update(&mut self, update: &Update) -> Result<(), Lost> {
        match &update.body {
            Body::Account(account) => self.ledger.account(account)?,
            Body::Slot(slot) => self.slot(slot)?,
            // Not subscribed to.
            Body::Transaction(_) | Body::BlockMeta(_) => {}
        }
        Ok(())
    }

    fn slot(&mut self, update: &SlotUpdate) -> Result<(), Lost> {
        self.market.heard(update.slot);
        self.coverage.slot(update);
        if self.first == First::Waiting
            && let Some(slot) = self.coverage.whole_from()
        {
            self.first = First::Reading;
            let (snapshots, answers) = (self.snapshots.clone(), self.answers.0.clone());
            self.calls
                .spawn(async move { snapshots.everything(slot, answers).await });
        }
        if self.ledger.slot(update)? {
            self.publish();
        }
        self.ask_for_missing();
        Ok(())
    }

    fn answer(&mut self, answer: Answer) {
        if self.first == First::Reading {
            self.ledger.seed(answer);
        } else {
            self.ledger.answer(answer);
            self.publish();
        }
    }

    fn call_done(&mut self, result: Result<(), SnapshotError>) -> Result<(), Lost> {
        result?;
        if self.first == First::Reading {
            // The answers were sent before the call ended, so they are all in the channel.
            while let Ok(answer) = self.answers.1.try_recv() {
                self.ledger.seed(answer);
            }
            self.first = First::Read;
            self.ledger.seeded();
            tracing::info!("the chain is read; waiting for the stream to reach it");
            self.publish();
        }
        Ok(())
    }

    /// Shows readers what there is, once nothing is missing any more.
    fn publish(&mut self) {
        let Some(visible) = self.ledger.visible() else {
            return;
        };
        let slot = visible.processed.slot;
        self.last_slot_at = Instant::now();
        if slot < self.catch_up_to {
            return;
        }
        self.market.publish(visible);
        if !self.ready {
            self.ready = true;
            self.catch_up_to = 0;
            self.backoff.reset();
            self.announce();
        }
    }

    fn announce(&self) {
        tracing::info!(status = ?self.market.status(), "market ready");
        let visible = self.ledger.visible();
        let incomplete = visible.iter().flat_map(|v| v.processed.state.incomplete());
        for (pool, reason) in incomplete {
            tracing::warn!(%pool, %reason, "pool cannot be quoted");
        }
    }

    /// Reads the parts of new pools that the stream does not tell. A failure leaves those pools out
    /// and nothing else, so it is tried again and ends nothing.
    fn ask_for_missing(&mut self) {
        let Some((head, _)) = self.ledger.heads() else {
            return;
        };
        let keys = self.ledger.take_wanted();
        if keys.is_empty() {
            return;
        }
        let (snapshots, answers) = (self.snapshots.clone(), self.answers.0.clone());
        self.calls.spawn(async move {
            let mut backoff = Backoff::new();
            while let Err(error) = snapshots.accounts(&keys, head, &answers).await {
                tracing::warn!(%error, accounts = keys.len(), "parts of new pools were not read");
                sleep(backoff.next_pause(rand::random())).await;
            }
            Ok(())
        });
    }
}

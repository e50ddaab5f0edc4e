//! The task that keeps the market: connect, join a snapshot, follow the slots, start over on any
//! doubt.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, time::Duration};

use service_kit::{Backoff, CancellationToken};
use sluice_geyser::{Body, Endpoint, SlotUpdate, Stream, StreamError, Update};
use solana_pubkey::Pubkey;
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep, sleep_until},
};

use super::{
    apply::{Batch, Divergence, Ledger},
    bootstrap::{SnapshotError, Snapshots},
    subscription::{Coverage, Generation},
    view::Market,
};

/// Time without a sealed slot after which the stream is given up. The stream itself ends on silence;
/// this covers one that still pings but tells nothing of the chain. Longer than readers wait before
/// they refuse, so that a chain that halts does not cost a snapshot at once.
const NO_SLOT_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between the first new key and the subscription that adds it, which lets keys of one slot go
/// in one request: a request repeats every key.
const KEYS_DEBOUNCE: Duration = Duration::from_millis(100);

/// Why the market starts over.
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

/// Keeps `market` until `shutdown`.
pub(super) async fn run(
    market: Market,
    endpoint: Endpoint,
    snapshots: Snapshots,
    shutdown: CancellationToken,
) {
    let mut backoff = Backoff::new();
    loop {
        market.clear("the market is reading the chain".to_owned());
        let session = Session::open(&market, &endpoint, &snapshots, &mut backoff);
        let lost = tokio::select! {
            () = shutdown.cancelled() => break,
            lost = session => lost,
        };
        market.set_not_ready(lost.to_string());
        let pause = backoff.next_pause(rand::random());
        tracing::warn!(reason = %lost, ?pause, "market lost; starting over");
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = sleep(pause) => {}
        }
    }
    market.set_not_ready("the service is shutting down".to_owned());
}

/// What the session is reading over RPC.
enum Reading {
    /// Waits for the first subscription to be in force, then for the list of pools.
    Pools,
    /// Nothing: every known key is subscribed to and read.
    Nothing,
    /// Waits for a subscription with new keys to be in force, then for these accounts.
    Keys(Vec<Pubkey>),
}

/// One connection, from the first slot to the first doubt.
struct Session<'a> {
    market: &'a Market,
    snapshots: &'a Snapshots,
    backoff: &'a mut Backoff,
    stream: Stream,
    ledger: Ledger,
    generation: Generation,
    coverage: Coverage,
    /// Keys that the subscription in force or on its way contains.
    subscribed: BTreeSet<Pubkey>,
    reading: Reading,
    calls: JoinSet<Result<Vec<Batch>, SnapshotError>>,
    /// When the subscription is to be replaced; `None` when no key is new.
    replace_at: Option<Instant>,
    last_slot_at: Instant,
    ready: bool,
}

impl<'a> Session<'a> {
    async fn open(
        market: &'a Market,
        endpoint: &Endpoint,
        snapshots: &'a Snapshots,
        backoff: &'a mut Backoff,
    ) -> Lost {
        let generation = Generation(1);
        let subscribed = BTreeSet::new();
        let stream = match Stream::open(endpoint, generation.request(&subscribed)).await {
            Ok(stream) => stream,
            Err(error) => return error.into(),
        };
        let session = Self {
            market,
            snapshots,
            backoff,
            stream,
            ledger: Ledger::default(),
            generation,
            coverage: Coverage::new(generation),
            subscribed,
            reading: Reading::Pools,
            calls: JoinSet::new(),
            replace_at: None,
            last_slot_at: Instant::now(),
            ready: false,
        };
        match session.follow().await {
            Ok(never) => match never {},
            Err(lost) => lost,
        }
    }

    async fn follow(mut self) -> Result<std::convert::Infallible, Lost> {
        loop {
            let no_slot_at = self.last_slot_at + NO_SLOT_TIMEOUT;
            let replace_at = self.replace_at;
            tokio::select! {
                update = self.stream.next() => self.update(update?)?,
                Some(batches) = self.calls.join_next() => self.read(batches??),
                () = sleep_until(replace_at.unwrap_or(no_slot_at)), if replace_at.is_some() => {
                    self.replace().await?;
                }
                () = sleep_until(no_slot_at) => return Err(Lost::NoSlot),
            }
        }
    }

    fn update(&mut self, update: Update) -> Result<(), Lost> {
        match update.body {
            Body::Account(account) => self.ledger.account(account)?,
            Body::Slot(slot) => self.slot(&slot, &update.filters)?,
            // Not subscribed to.
            Body::Transaction(_) | Body::BlockMeta(_) => {}
        }
        Ok(())
    }

    fn slot(&mut self, update: &SlotUpdate, filters: &[String]) -> Result<(), Lost> {
        let Some(sealed) = self.ledger.slot(update)? else {
            return Ok(());
        };
        let slot = sealed.slot;
        self.last_slot_at = Instant::now();
        self.coverage.sealed(slot, filters);
        self.start_call();
        self.notice_new_keys();
        let complete = self.complete() && sealed.clock.is_some();
        let became_ready = complete && !self.ready;
        self.ready |= complete;
        self.market
            .publish(sealed, self.ready, self.ledger.incomplete().count());
        if became_ready {
            self.backoff.reset();
            self.announce(slot);
        }
        Ok(())
    }

    /// Whether everything that was found is read and joined.
    fn complete(&self) -> bool {
        matches!(self.reading, Reading::Nothing)
            && self.replace_at.is_none()
            && self.ledger.joined()
            && self.ledger.wanted().is_empty()
    }

    fn announce(&self, slot: u64) {
        tracing::info!(slot, status = ?self.market.status(), "market ready");
        for (pool, reason) in self.ledger.incomplete() {
            tracing::warn!(%pool, %reason, "pool cannot be quoted");
        }
    }

    /// Starts the RPC call that waited for the subscription to be in force.
    fn start_call(&mut self) {
        let (Some(min_slot), true) = (self.coverage.complete_from(), self.calls.is_empty()) else {
            return;
        };
        let snapshots = self.snapshots.clone();
        match &mut self.reading {
            Reading::Pools => {
                self.calls
                    .spawn(async move { Ok(vec![snapshots.pools(min_slot).await?]) });
            }
            Reading::Keys(keys) => {
                let keys = std::mem::take(keys);
                self.calls
                    .spawn(async move { snapshots.accounts(keys, min_slot).await });
            }
            Reading::Nothing => {}
        }
    }

    fn read(&mut self, batches: Vec<Batch>) {
        let accounts: usize = batches.iter().map(|batch| batch.accounts.len()).sum();
        let what = if matches!(self.reading, Reading::Pools) {
            "pools"
        } else {
            "accounts"
        };
        tracing::info!(accounts, what, "snapshot read");
        self.reading = Reading::Nothing;
        for batch in batches {
            self.ledger.snapshot(batch);
        }
    }

    /// Plans a new subscription when there are keys that the present one lacks. One at a time: the
    /// next waits until the accounts of the last are read.
    fn notice_new_keys(&mut self) {
        let new = self.ledger.known().len() > self.subscribed.len();
        if new && self.replace_at.is_none() && matches!(self.reading, Reading::Nothing) {
            let pause = if self.ready {
                KEYS_DEBOUNCE
            } else {
                Duration::ZERO
            };
            self.replace_at = Some(Instant::now() + pause);
        }
    }

    async fn replace(&mut self) -> Result<(), Lost> {
        self.replace_at = None;
        self.generation = Generation(self.generation.0 + 1);
        self.coverage = Coverage::new(self.generation);
        self.subscribed.clone_from(self.ledger.known());
        // All wanted keys are known ones, so none is read before it is subscribed to.
        self.reading = Reading::Keys(self.ledger.wanted().iter().copied().collect());
        tracing::info!(
            keys = self.subscribed.len(),
            unread = self.ledger.wanted().len(),
            "subscribing to accounts by key"
        );
        self.stream
            .replace(self.generation.request(&self.subscribed))
            .await?;
        Ok(())
    }
}

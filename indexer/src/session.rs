//! One connection's worth of the chain: what its updates mean becomes what the store is told.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Instant, SystemTime},
};

use sluice_geyser::{Body, Update};
use sluice_store::{
    Commit, Commitment, FilterState, NewMessage, OpenSlot, Revision, Store, StoreError, Timestamp,
};
use tokio::sync::Notify;

use crate::{
    follow::{Follower, Health, SessionEnd},
    metrics::{Metrics, Stage},
    slots::{RevertReason, SlotTree, Step, content::Item, tree::Beginning},
    status::Status,
    subscribe::proved_revision,
    webhooks::{compose, idl::Idls, match_event::Subscriptions},
};

/// Where a session begins, and what was known before.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The slot up to which everything confirmed is stored.
    pub(crate) confirmed: Option<u64>,
    /// The same of what is finalized.
    pub(crate) finalized: Option<u64>,
    /// The first slot that is asked for; `None` for what comes next.
    pub(crate) from_slot: Option<u64>,
    /// Slots that the server is known to leave out.
    pub(crate) missing: Option<(u64, u64)>,
    /// Whether everything since the checkpoint is asked for.
    pub(crate) complete: bool,
    /// Whether anybody waits for finality.
    pub(crate) finality_wanted: bool,
    /// Slots told at processed whose fate is not known.
    pub(crate) open: Vec<OpenSlot>,
}

/// A connection's state.
pub(crate) struct Session<'a> {
    store: Store,
    status: Status,
    stored: Arc<Notify>,
    metrics: Metrics,
    idls: Arc<Idls>,
    health: &'a mut Health,
    subscriptions: Arc<Subscriptions>,
    origin: Origin,
    tree: SlotTree,
    /// Slots of which messages at processed are stored.
    open: BTreeSet<u64>,
    /// The newest slot that any update was about.
    newest: u64,
    /// The slot up to which everything confirmed is stored under this session's filter.
    settled: Option<u64>,
    /// Whether the slots that are missing were told.
    gap_told: bool,
    proved: Option<Revision>,
}

/// What is to be stored together.
#[derive(Default)]
struct Batch {
    messages: Vec<NewMessage>,
    opened: Vec<OpenSlot>,
    settled: Vec<u64>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        follower: &Follower,
        subscriptions: Arc<Subscriptions>,
        origin: Origin,
        health: &'a mut Health,
    ) -> Self {
        let tree = SlotTree::new(Beginning {
            from_slot: origin.from_slot,
            open: origin.open.clone(),
            finality_wanted: origin.finality_wanted,
            missing: origin.missing,
        });
        Self {
            store: follower.store.clone(),
            status: follower.status.clone(),
            stored: Arc::clone(&follower.stored),
            metrics: follower.metrics.clone(),
            idls: Arc::clone(&follower.idls),
            health,
            subscriptions,
            open: origin.open.iter().map(|open| open.slot).collect(),
            origin,
            tree,
            newest: 0,
            settled: None,
            gap_told: false,
            proved: None,
        }
    }

    /// Whom this session serves.
    pub(crate) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Serves fewer from now on.
    pub(crate) fn narrow(&mut self, subscriptions: Arc<Subscriptions>) {
        self.subscriptions = subscriptions;
    }

    pub(crate) async fn apply(&mut self, update: Update) -> Result<(), SessionEnd> {
        let received = Instant::now();
        self.metrics.update();
        let proved = proved_revision(&update);
        let steps = match update.body {
            // What the validator read from its snapshot at start-up did not happen now.
            Body::Account(account) if account.is_startup => Vec::new(),
            Body::Account(account) => self.tree.item(account.slot, Item::Account(account))?,
            Body::Transaction(transaction) => self
                .tree
                .item(transaction.slot, Item::Transaction(transaction))?,
            Body::BlockMeta(block) => self.tree.block(block)?,
            Body::Slot(slot) => {
                self.newest = self.newest.max(slot.slot);
                self.status.saw_slot(slot.slot, received);
                self.metrics.slot_seen(slot.slot);
                self.tree.status(&slot)?
            }
        };
        self.carry_out(steps, received).await?;
        self.prove(proved).await
    }

    async fn carry_out(&mut self, steps: Vec<Step>, received: Instant) -> Result<(), SessionEnd> {
        let mut batch = Batch::default();
        for step in steps {
            let now = Timestamp::from(SystemTime::now());
            match step {
                Step::Tell {
                    commitment,
                    block,
                    content,
                } => {
                    let messages = compose::events(
                        &self.subscriptions,
                        &self.idls,
                        commitment,
                        &block,
                        &content,
                        now,
                    );
                    if commitment == Commitment::Processed && !messages.is_empty() {
                        self.open.insert(block.slot);
                        batch.opened.push(OpenSlot {
                            slot: block.slot,
                            blockhash: Some(block.hash.clone()),
                        });
                    }
                    batch.messages.extend(messages);
                }
                Step::Revert { slot, reason } => {
                    // What is taken back may be in the batch, and is read from the store.
                    self.store_batch(std::mem::take(&mut batch), None, received)
                        .await?;
                    batch = self.revert(slot, reason, now).await?;
                }
                Step::Settled { commitment, slot } => {
                    self.tell_gap(&mut batch, now).await?;
                    if commitment == Commitment::Confirmed {
                        let later = self.open.split_off(&slot.saturating_add(1));
                        batch
                            .settled
                            .extend(std::mem::replace(&mut self.open, later));
                    }
                    let checkpoint = Some((commitment, slot));
                    self.store_batch(std::mem::take(&mut batch), checkpoint, received)
                        .await?;
                    if commitment == Commitment::Confirmed {
                        self.settled = Some(slot);
                    }
                    self.health.recovered();
                }
            }
        }
        self.store_batch(batch, None, received).await
    }

    async fn revert(
        &mut self,
        slot: u64,
        reason: RevertReason,
        now: Timestamp,
    ) -> Result<Batch, StoreError> {
        if !self.open.remove(&slot) {
            return Ok(Batch::default());
        }
        let told = self.store.messages_of_slot(slot).await?;
        tracing::info!(slot, reason = reason.name(), "events are taken back");
        Ok(Batch {
            messages: compose::reverted(&told, slot, reason, now),
            opened: Vec::new(),
            settled: vec![slot],
        })
    }

    async fn store_batch(
        &mut self,
        batch: Batch,
        checkpoint: Option<(Commitment, u64)>,
        received: Instant,
    ) -> Result<(), SessionEnd> {
        let idle = batch.messages.is_empty() && batch.settled.is_empty();
        if idle && checkpoint.is_none() {
            return Ok(());
        }
        let commit = Commit {
            messages: &batch.messages,
            checkpoint,
            opened: &batch.opened,
            settled: &batch.settled,
            now: Timestamp::from(SystemTime::now()),
        };
        let committed = self.store.commit(&commit).await?;
        if let Some((commitment, _)) = checkpoint
            && let Some(slot) = committed.checkpoint
        {
            self.metrics.checkpoint(commitment, slot);
        }
        if committed.inserted > 0 {
            self.metrics.took(Stage::Stored, received.elapsed());
            if let Some(message) = batch.messages.first() {
                self.metrics.stored(message.commitment, committed.inserted);
            }
            self.stored.notify_one();
        }
        Ok(())
    }

    /// Tells once, when the first slot is settled, which slots nobody was told about: those since the
    /// checkpoint, of a session that could not start there, or those that the server leaves out. They are
    /// stored together with the checkpoint that passes them.
    async fn tell_gap(&mut self, batch: &mut Batch, now: Timestamp) -> Result<(), SessionEnd> {
        if std::mem::replace(&mut self.gap_told, true) {
            return Ok(());
        }
        for commitment in Commitment::ALL {
            let Some((first, last)) = self.gap(commitment) else {
                continue;
            };
            let slots = last.saturating_sub(first).saturating_add(1);
            tracing::error!(
                first,
                last,
                %commitment,
                "slots were not read completely and cannot be replayed any more: their events are lost"
            );
            if commitment == Commitment::Confirmed {
                self.metrics.gap(slots);
            }
            let messages = compose::gap(&self.subscriptions, commitment, first, last, now);
            batch.messages.extend(messages);
            if commitment == Commitment::Finalized {
                // So that a reconnect before the next finality does not ask for them again.
                let commit = Commit::slot(Commitment::Finalized, last, &[], now);
                self.store.commit(&commit).await?;
            }
        }
        Ok(())
    }

    /// The slots that are missing at a commitment.
    fn gap(&self, commitment: Commitment) -> Option<(u64, u64)> {
        if self.origin.complete {
            return self.origin.missing;
        }
        let known = match commitment {
            Commitment::Finalized => self.origin.finalized,
            _ => self.origin.confirmed,
        }?;
        let base = self.tree.base()?;
        // A session that takes what comes may have begun in the middle of its first block.
        let last = match self.origin.from_slot {
            Some(_) => base,
            None => base.saturating_add(1),
        };
        let first = known.saturating_add(1);
        (first <= last).then_some((first, last))
    }

    /// Records that a filter is in force: the update that bears its name can only come from it. A session
    /// that asked for slots passes all of them through it. One that takes what comes, or whose filter was
    /// replaced, begins in the middle of slots; the first that is whole is the one after the newest.
    ///
    /// Slots that are read once more, for webhooks that were written meanwhile, must be stored before: after
    /// a proof nobody would ask for them again.
    async fn prove(&mut self, proved: Option<Revision>) -> Result<(), SessionEnd> {
        let Some(revision) = proved.filter(|revision| self.proved != Some(*revision)) else {
            return Ok(());
        };
        let since_slot = match (self.proved, self.origin.from_slot) {
            (None, Some(from_slot)) => {
                let stored = self.settled.or(from_slot.checked_sub(1));
                if stored < self.origin.confirmed {
                    return Ok(());
                }
                from_slot
            }
            _ => self.newest.saturating_add(1),
        };
        let state = FilterState {
            revision,
            since_slot,
        };
        self.store.record_filter_state(state).await?;
        self.proved = Some(revision);
        tracing::info!(
            revision = revision.0,
            since_slot,
            "the stream's filter is in force"
        );
        Ok(())
    }
}

//! One connection's worth of the chain: what its updates mean becomes what the store is told.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::{Instant, SystemTime},
};

use sluice_geyser::{Body, Update};
use sluice_store::{
    Commit, Commitment, FilterState, MessageId, MessageKind, NewMessage, Revision, StoreError,
    Timestamp, UnconfirmedSlot,
};
use tokio::{sync::mpsc, task::JoinError};

use super::{
    follower::{Follower, Health, SessionEnd},
    outbox::{Batch, Outbox, Told},
    subscription::proved_revision,
};
use crate::{
    events::{
        compose,
        idl::Idls,
        message_id::{Identity, message_id},
        subscription_index::Subscriptions,
    },
    slots::{
        Block, RevertReason, SlotContent, SlotTree, Step, content::Item, fork_tree::Beginning,
    },
    status::Status,
};

/// Messages of a slot at processed that are stored together. Fewer cost more each, more come later on their way.
const PIECE: usize = 64;

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
    pub(crate) open: Vec<UnconfirmedSlot>,
}

/// A connection's state.
pub(crate) struct Session<'a> {
    outbox: Outbox,
    status: Status,
    idls: Arc<Idls>,
    health: &'a mut Health,
    subscriptions: Arc<Subscriptions>,
    origin: Origin,
    tree: SlotTree,
    /// Slots of which messages at processed are stored.
    open: BTreeSet<u64>,
    /// Those of them of which nothing was stored before this session, nor taken back in it.
    never_taken_back: BTreeSet<u64>,
    /// The newest slot that any update was about.
    newest: u64,
    /// The slot up to which everything confirmed is stored under this session's filter.
    settled: Option<u64>,
    /// Whether the slots that are missing were told.
    gap_told: bool,
    proved: Option<Revision>,
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
            decided: origin.confirmed,
            finality_wanted: origin.finality_wanted,
            missing: origin.missing,
        });
        Self {
            outbox: follower.outbox.clone(),
            status: follower.status.clone(),
            idls: Arc::clone(&follower.idls),
            health,
            subscriptions,
            open: origin.open.iter().map(|open| open.slot).collect(),
            never_taken_back: BTreeSet::new(),
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
        self.outbox.metrics.update();
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
                self.outbox.metrics.slot_seen(slot.slot);
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
                    if commitment == Commitment::Processed {
                        self.outbox
                            .send(std::mem::take(&mut batch), received)
                            .await?;
                        self.tell_processed(block, content, received).await?;
                        continue;
                    }
                    let told = self.compose(commitment, &block, &content, now);
                    batch.messages.extend(told);
                    if commitment == Commitment::Confirmed {
                        let again = self.tell_again(&block, &content, now).await?;
                        batch.messages.extend(again);
                    }
                }
                Step::Revert { slot, reason } => {
                    // What is taken back may be in the batch, and is read from the store. So is, when the
                    // slot is confirmed after all, that it was taken back.
                    self.outbox
                        .send(std::mem::take(&mut batch), received)
                        .await?;
                    let taken_back = self.revert(slot, reason, now).await?;
                    self.outbox.send(taken_back, received).await?;
                }
                Step::Settled { commitment, slot } => {
                    self.tell_gap(&mut batch, now).await?;
                    if commitment == Commitment::Confirmed {
                        let later = self.open.split_off(&slot.saturating_add(1));
                        batch
                            .settled
                            .extend(std::mem::replace(&mut self.open, later));
                        self.never_taken_back = self.never_taken_back.split_off(&slot);
                    }
                    batch.checkpoint = Some((commitment, slot));
                    self.outbox
                        .send(std::mem::take(&mut batch), received)
                        .await?;
                    if commitment == Commitment::Confirmed {
                        self.settled = Some(slot);
                    }
                    self.health.recovered();
                }
            }
        }
        Ok(self.outbox.send(batch, received).await?)
    }

    fn compose(
        &self,
        commitment: Commitment,
        block: &Block,
        content: &SlotContent,
        now: Timestamp,
    ) -> Vec<NewMessage> {
        let (subscriptions, idls) = (&self.subscriptions, &self.idls);
        compose::events(subscriptions, idls, commitment, block, content, now).collect()
    }

    /// Tells what happened in a slot that is sealed. Those who asked for that are in a hurry: while some messages are
    /// stored, the next are composed.
    async fn tell_processed(
        &mut self,
        block: Arc<Block>,
        content: Arc<SlotContent>,
        received: Instant,
    ) -> Result<(), SessionEnd> {
        if self.subscriptions.at(Commitment::Processed).is_empty() || content.is_empty() {
            return Ok(());
        }
        let open = UnconfirmedSlot {
            slot: block.slot,
            blockhash: Some(block.hash.clone()),
        };
        let (subscriptions, idls) = (Arc::clone(&self.subscriptions), Arc::clone(&self.idls));
        let (sender, pieces) = mpsc::channel(1);
        let composing = tokio::spawn(async move {
            const COMMITMENT: Commitment = Commitment::Processed;
            let now = Timestamp::from(SystemTime::now());
            let mut events =
                compose::events(&subscriptions, &idls, COMMITMENT, &block, &content, now);
            loop {
                let piece: Vec<_> = events.by_ref().take(PIECE).collect();
                // Nobody takes it when the session is over.
                if piece.is_empty() || sender.send(piece).await.is_err() {
                    return;
                }
            }
        });
        let slot = open.slot;
        let told = self.outbox.send_in_pieces(open, pieces, received).await?;
        if told != Told::Nothing {
            self.open.insert(slot);
        }
        if told == Told::New {
            self.never_taken_back.insert(slot);
        }
        match composing.await.map_err(JoinError::try_into_panic) {
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Ok(()) | Err(Err(_)) => Ok(()),
        }
    }

    /// What was told of a block at processed and taken back, although the block is confirmed now: those who
    /// heard that it did not happen must hear of it again, under another id. Not before it is confirmed, because
    /// a server that replays tells of banks that died once more, as if they lived.
    async fn tell_again(
        &self,
        block: &Block,
        content: &SlotContent,
        now: Timestamp,
    ) -> Result<Vec<NewMessage>, StoreError> {
        let nobody_heard = self.subscriptions.at(Commitment::Processed).is_empty();
        let stands = self.never_taken_back.contains(&block.slot);
        if nobody_heard || stands || content.is_empty() {
            return Ok(Vec::new());
        }
        let of_slot = self.outbox.store.messages_of_slot(block.slot).await?;
        let reverting: HashSet<MessageId> = of_slot
            .into_iter()
            .filter(|message| message.kind == MessageKind::Reverted)
            .map(|message| message.id)
            .collect();
        if reverting.is_empty() {
            return Ok(Vec::new());
        }
        let revived = Block {
            revival: 1,
            ..block.clone()
        };
        let told = self.compose(Commitment::Processed, block, content, now);
        let again = self.compose(Commitment::Processed, &revived, content, now);
        let taken_back = told
            .iter()
            .map(|message| reverting.contains(&id_of_reverted(message)));
        Ok(again
            .into_iter()
            .zip(taken_back)
            .filter_map(|(message, taken_back)| taken_back.then_some(message))
            .collect())
    }

    async fn revert(
        &mut self,
        slot: u64,
        reason: RevertReason,
        now: Timestamp,
    ) -> Result<Batch, StoreError> {
        self.never_taken_back.remove(&slot);
        if !self.open.remove(&slot) {
            return Ok(Batch::default());
        }
        let told = self.outbox.store.messages_of_slot(slot).await?;
        tracing::info!(slot, reason = reason.name(), "events are taken back");
        Ok(Batch {
            messages: compose::reverted(&told, slot, reason, now),
            settled: vec![slot],
            ..Batch::default()
        })
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
                self.outbox.metrics.gap(slots);
            }
            let messages = compose::gap(&self.subscriptions, commitment, first, last, now);
            batch.messages.extend(messages);
            if commitment == Commitment::Finalized {
                // So that a reconnect before the next finality does not ask for them again.
                let commit = Commit::slot(Commitment::Finalized, last, &[], now);
                self.outbox.store.commit(&commit).await?;
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
            Commitment::Finalized => self.origin.finalized.or(self.origin.confirmed),
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

    /// Makes the next session begin where this one did, if nothing was settled before: from the proof on nothing
    /// may be missed, and until the first slot is settled, finalized ones included, there is no checkpoint to
    /// resume from. False while that beginning is not known.
    async fn mark_beginning(&self) -> Result<bool, StoreError> {
        // Finality first: a checkpoint of it alone is not resumed from.
        let marks = [
            (Commitment::Finalized, self.origin.finalized),
            (Commitment::Confirmed, self.origin.confirmed),
        ];
        let unknown = marks.into_iter().filter(|(_, known)| known.is_none());
        let unknown: Vec<_> = unknown.map(|(commitment, _)| commitment).collect();
        // A session that leaves slots out tells which before a checkpoint passes them.
        if unknown.is_empty() || !self.origin.complete {
            return Ok(true);
        }
        let asked = self.origin.from_slot.and_then(|slot| slot.checked_sub(1));
        let Some(before) = asked.or(self.tree.base()) else {
            return Ok(false);
        };
        for commitment in unknown {
            let now = Timestamp::from(SystemTime::now());
            let mark = Commit::slot(commitment, before, &[], now);
            self.outbox.store.commit(&mark).await?;
        }
        Ok(true)
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
        let in_force_slot = match (self.proved, self.origin.from_slot) {
            (None, Some(from_slot)) => {
                let stored = self.settled.or(from_slot.checked_sub(1));
                if stored < self.origin.confirmed {
                    return Ok(());
                }
                from_slot
            }
            _ => self.newest.saturating_add(1),
        };
        if !self.mark_beginning().await? {
            return Ok(());
        }
        let state = FilterState {
            revision,
            in_force_slot,
        };
        self.outbox.store.record_filter_state(state).await?;
        self.proved = Some(revision);
        tracing::info!(
            revision = revision.0,
            in_force_slot,
            "the stream's filter is in force"
        );
        Ok(())
    }
}

/// The id of the message that takes this one back.
fn id_of_reverted(message: &NewMessage) -> MessageId {
    let identity = Identity::Reverted(message.slot, &message.id);
    message_id(&message.webhook, Commitment::Processed, identity)
}

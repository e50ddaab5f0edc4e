//! Session: turns the updates of one stream connection into outbox commits.
//!
//! Messages are gathered in a batch that a checkpoint completes; of many, all but the last piece are committed before.
//! A session that ends in between emits them again, and they are known by their ids. Two actions cannot wait for the
//! checkpoint: an emission at processed, which endpoints wait for, and a retraction, which reads from the store what was
//! emitted. Both store the batch first.
//!
//! A session that is slots behind the stream gathers several of them in a batch, emissions at processed included: a commit
//! costs the same for one slot or for ten, and on a machine that is busy with other things it is most of what a slot costs.

mod ahead;
mod composing;
mod gap;
mod gathering;
mod hand_over;
mod in_force;
mod last_owners;
mod taken;
mod unconfirmed;

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use sluice_geyser::{Assembled, Body, Generation, Update};
use sluice_store::{Commitment, Revision, Timestamp};
use tokio::sync::watch;

use self::{
    ahead::Ahead,
    composing::{Composing, Emission},
    gathering::Gathering,
    last_owners::HeldCloses,
    taken::TakenReader,
};
use super::{
    filter_round::FilterRound,
    outbox::{CommitPipeline, Outbox, OutboxBatch},
    reconnect::Reconnect,
    session_end::SessionEnd,
};
use crate::{
    events::{idl::Idls, program_events::logs_truncated, subscription_index::Subscriptions},
    rpc::Node,
    slots::{Action, ForkTree, Ownership, ResumePoint},
    status::Status,
};

/// What every session needs.
#[derive(Clone, Debug)]
pub(crate) struct SessionContext {
    /// Where messages and the checkpoint go.
    pub(crate) outbox: Outbox,
    /// The programs whose events are decoded.
    pub(crate) idls: watch::Receiver<Arc<Idls>>,
    /// Shows what was read.
    pub(crate) status: Status,
    /// Says what became of accounts that the stream does not show; `None` where reading by RPC is switched off.
    pub(crate) node: Option<Node>,
}

/// Whom the slots of a connection are emitted to.
#[derive(Clone, Copy)]
struct Served<'a> {
    subscriptions: &'a Arc<Subscriptions>,
    /// Whether its checkpoints count: only the live stream serves every webhook.
    checkpoints: bool,
}

/// A connection's state.
pub(super) struct Session<'a> {
    context: SessionContext,
    reconnect: &'a mut Reconnect,
    subscriptions: Arc<Subscriptions>,
    resume: ResumePoint,
    tree: ForkTree,
    /// Slots of which messages at processed are stored, and that are not resolved.
    unconfirmed: BTreeSet<u64>,
    /// Those of them of which nothing was stored before this session, nor retracted in it.
    never_retracted: BTreeSet<u64>,
    /// Slots that were retracted in this session.
    retracted: BTreeSet<u64>,
    /// Which programs owned the accounts that are read.
    ownership: Ownership,
    /// Accounts that were closed while a program's accounts are read; `None` while none is.
    held_closes: Option<HeldCloses>,
    /// Asks for accounts that were taken from a watched program.
    taken_reader: TakenReader,
    /// Whether it was said that too many accounts are watched.
    warned_of_crowding: bool,
    /// The finalized slot at which tenures that are over were forgotten last.
    owners_forgotten: u64,
    /// The slot up to which everything confirmed is stored under this session's filter.
    watermark: Option<u64>,
    /// Whether a checkpoint was stored: the first one also reports the gap before it.
    has_checkpoint: bool,
    /// The revision that the connection was opened for.
    first_revision: Revision,
    /// The first slot that the stream gives out, once it is known.
    first_whole: Option<u64>,
    /// The revision whose filter is recorded to be in force.
    in_force: Option<Revision>,
    /// The revision of which the webhooks that are gone were left out.
    narrowed_to: Option<Revision>,
    /// The change of the filter under way.
    round: Option<FilterRound>,
    /// The last slot that began before a filter was in force to which webhooks were handed over.
    last_cut: Option<u64>,
    /// What several slots are gathered in.
    gathering: Gathering,
    /// Whether messages at confirmed are staged: some of the last were.
    stages: bool,
    /// What is composed ahead.
    ahead: Ahead,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        context: SessionContext,
        subscriptions: Arc<Subscriptions>,
        resume: ResumePoint,
        reconnect: &'a mut Reconnect,
    ) -> Self {
        Self {
            context,
            reconnect,
            first_revision: subscriptions.revision(),
            subscriptions,
            tree: ForkTree::new(&resume),
            unconfirmed: resume.unconfirmed.keys().copied().collect(),
            never_retracted: BTreeSet::new(),
            retracted: BTreeSet::new(),
            resume,
            ownership: Ownership::default(),
            owners_forgotten: 0,
            held_closes: None,
            taken_reader: TakenReader::default(),
            warned_of_crowding: false,
            watermark: None,
            has_checkpoint: false,
            first_whole: None,
            in_force: None,
            narrowed_to: None,
            round: None,
            last_cut: None,
            gathering: Gathering::default(),
            stages: false,
            ahead: Ahead::default(),
        }
    }

    /// The webhooks that the live stream serves.
    pub(super) const fn subscriptions(&self) -> &Arc<Subscriptions> {
        &self.subscriptions
    }

    /// Does what follows from what the live stream gives out.
    pub(super) async fn apply(&mut self, assembled: Assembled) -> Result<(), SessionEnd> {
        match assembled {
            Assembled::InForce { filter, slot } => self.shown(filter, slot).await?,
            Assembled::Replaced { slot } => self.replaced(slot).await?,
            // What comes too late is emitted by itself.
            Assembled::Update(update) | Assembled::Late { update, .. } => {
                self.update(update).await?;
            }
            // Nothing is asked for ahead.
            Assembled::Ahead { .. } | Assembled::Void { .. } => {}
        }
        self.record_in_force().await
    }

    /// Takes note that everything from `slot` on comes as the filter of a generation selects it.
    async fn shown(&mut self, filter: Generation, slot: u64) -> Result<(), SessionEnd> {
        self.first_whole.get_or_insert(slot);
        if let Some(round) = &mut self.round {
            round.shown(filter, slot);
            self.advance_side(Instant::now()).await?;
        }
        Ok(())
    }

    /// Does what follows from an update of a slot that is whole.
    pub(super) async fn update(&mut self, update: Update) -> Result<(), SessionEnd> {
        let received = Instant::now();
        self.context.outbox.metrics.update();
        let mut is_content = true;
        match &update.body {
            Body::Slot(slot) => {
                self.check_cut(slot)?;
                self.context.status.saw_slot(slot.slot, received);
                let outbox = &self.context.outbox;
                outbox.metrics.slot_seen(slot.slot);
                outbox.traces.saw_slot(slot.slot, || outbox.clock.now());
                is_content = false;
            }
            Body::Transaction(transaction)
                if logs_truncated(transaction) && self.is_read(transaction) =>
            {
                self.context.outbox.metrics.logs_truncated();
            }
            _ => {}
        }
        let actions = match update.body {
            Body::Transaction(transaction) if !self.is_read(&transaction) => {
                self.tree.unread(transaction)?
            }
            _ => self.tree.take(update)?,
        };
        self.perform_live(actions, received).await?;
        if self.round.is_some() && !is_content {
            self.advance_side(received).await?;
        }
        Ok(())
    }

    /// Retracts what was emitted of a slot of which a replacement block follows.
    async fn replaced(&mut self, slot: u64) -> Result<(), SessionEnd> {
        let actions = self.tree.replaced(slot);
        self.perform_live(actions, Instant::now()).await
    }

    async fn perform_live(
        &mut self,
        actions: Vec<Action>,
        received: Instant,
    ) -> Result<(), SessionEnd> {
        let subscriptions = Arc::clone(&self.subscriptions);
        let live = Served {
            subscriptions: &subscriptions,
            checkpoints: true,
        };
        self.perform(live, actions, received).await
    }

    async fn perform(
        &mut self,
        served: Served<'_>,
        actions: Vec<Action>,
        received: Instant,
    ) -> Result<(), SessionEnd> {
        let mut pipeline = self.gathered(received);
        let performed = self.perform_in(&mut pipeline, served, actions).await;
        if performed.is_err() {
            // What is stored is leased to this process, and would wait for the end of its lease. The session ends for
            // the first fault.
            let _ = pipeline.submit().await;
        }
        performed?;
        self.gather(pipeline).await
    }

    /// Performs actions; the last messages are left in the pipeline.
    async fn perform_in(
        &mut self,
        pipeline: &mut CommitPipeline,
        served: Served<'_>,
        actions: Vec<Action>,
    ) -> Result<(), SessionEnd> {
        for action in actions {
            match action {
                Action::Emit {
                    commitment,
                    block,
                    events,
                } => {
                    let taken = self.taken(served, (commitment, &block), &events).await;
                    let last_owners = self.last_owners(served, &block, &events);
                    let last_owners = Arc::new(last_owners.with_taken(taken));
                    let emission = Emission {
                        commitment,
                        block,
                        events,
                        last_owners,
                    };
                    self.emit(served, pipeline, &emission).await?;
                }
                Action::Retract {
                    slot,
                    reason,
                    emitted,
                } => {
                    self.ownership.retract(slot);
                    // What is retracted may be in the batch. And when the slot is confirmed after all, the retraction
                    // is read from the store, too.
                    self.store(pipeline).await?;
                    self.retract(&mut pipeline.batch, slot, reason, emitted)
                        .await?;
                    self.store(pipeline).await?;
                }
                Action::Checkpoint { .. } if !served.checkpoints => {}
                Action::Checkpoint { commitment, slot } => {
                    self.forget_owners(commitment, slot);
                    self.checkpoint(pipeline, commitment, slot).await?;
                }
            }
        }
        Ok(())
    }

    /// Emits the events of a slot. At processed they are stored when it returns, unless slots are gathered; otherwise the last of
    /// them are in the batch.
    async fn emit(
        &mut self,
        served: Served<'_>,
        pipeline: &mut CommitPipeline,
        emission: &Emission,
    ) -> Result<(), SessionEnd> {
        match emission.commitment {
            Commitment::Processed => {
                if !self.gathers() {
                    self.store(pipeline).await?;
                }
                self.saw_processed(served, emission);
                self.emit_processed(served, pipeline, emission).await?;
                self.compose_ahead(served, emission);
                Ok(())
            }
            Commitment::Confirmed => {
                self.emit_committed(served, pipeline, emission).await?;
                let batch = &mut pipeline.batch;
                self.reinstate(served.subscriptions, batch, emission)
                    .await?;
                self.saw_confirmed(served, emission, batch);
                Ok(())
            }
            Commitment::Finalized => self.emit_committed(served, pipeline, emission).await,
        }
    }

    /// Emits events at confirmed or finalized; the last piece is left for the checkpoint that follows.
    async fn emit_committed(
        &mut self,
        served: Served<'_>,
        pipeline: &mut CommitPipeline,
        emission: &Emission,
    ) -> Result<(), SessionEnd> {
        let subscriptions = served.subscriptions;
        if subscriptions.at(emission.commitment).is_empty() || emission.events.is_empty() {
            return Ok(());
        }
        // A gap is reported with the first checkpoint, before all that was emitted since.
        let in_pieces = self.has_checkpoint || !served.checkpoints;
        let mut composing = match self.composed_ahead(served, emission) {
            Some(pieces) => Composing::of(pieces),
            None => self.compose(subscriptions, emission),
        };
        while let Some(piece) = composing.next().await {
            let is_last = piece.is_last;
            pipeline.batch.add(piece);
            if in_pieces && !is_last {
                pipeline.commit(&self.context.outbox).await?;
            }
        }
        Ok(())
    }

    /// Completes what was gathered by its checkpoint, and stores it unless more is gathered.
    async fn checkpoint(
        &mut self,
        pipeline: &mut CommitPipeline,
        commitment: Commitment,
        slot: u64,
    ) -> Result<(), SessionEnd> {
        if !self.has_checkpoint {
            self.report_gap(pipeline).await?;
            self.has_checkpoint = true;
        }
        let batch = &mut pipeline.batch;
        if commitment == Commitment::Confirmed {
            batch.resolved.extend(self.resolve_through(slot));
        }
        batch.checkpoints.advance(commitment, slot);
        if self.keeps(pipeline) {
            return Ok(());
        }
        self.store(pipeline).await
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.context.outbox.clock.now())
    }
}

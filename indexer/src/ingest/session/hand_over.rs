//! Changes of a session's filter: begins rounds, feeds their side stream, and hands webhooks over.

use std::{sync::Arc, time::Instant};

use sluice_geyser::{Assembled, Generation, Request, SlotStatus, SlotUpdate, StreamError};
use sluice_store::{Commitment, Revision};

use super::{
    super::{filter_round::FilterRound, resume::first_requested, subscription::request},
    Served, Session, SessionEnd,
};
use crate::{events::subscription_index::Subscriptions, slots::Action};

impl Session<'_> {
    /// Begins a round for `wanted`, and returns what the live stream is to be asked for; `None` when it is served, or
    /// must wait for the end of the round before.
    pub(in super::super) async fn begin_round(
        &mut self,
        wanted: &Arc<Subscriptions>,
    ) -> Result<Option<Request>, SessionEnd> {
        if self.subscriptions.revision() == wanted.revision() {
            return Ok(None);
        }
        if self.narrowed_to != Some(wanted.revision()) {
            self.narrowed_to = Some(wanted.revision());
            if let Some(rest) = self.subscriptions.still_in(wanted) {
                self.subscriptions = Arc::new(rest);
            }
        }
        let (Some(in_force), None) = (self.in_force, &self.round) else {
            return Ok(None);
        };
        let changed = wanted.changed_since(&self.subscriptions);
        let changes = self.context.outbox.store.filter_changes(in_force).await?;
        let requested_slot = first_requested(&changes, wanted.revision());
        let finality_wanted = !changed.at(Commitment::Finalized).is_empty();
        self.tree.hold_emitted(finality_wanted);
        let missing = changed.beyond(&self.subscriptions);
        let changed = (changed, missing);
        let round = FilterRound::new(Arc::clone(wanted), changed, requested_slot, &self.tree);
        self.round = Some(round);
        Ok(Some(request(wanted, None)))
    }

    /// Ends the session when another block follows of a slot that began before the filter was in force: the side stream, which
    /// would have read what new addresses did in it, is closed.
    pub(super) fn check_cut(&self, update: &SlotUpdate) -> Result<(), SessionEnd> {
        let is_unconfirmed = Some(update.slot) > self.tree.watermark(Commitment::Confirmed);
        if update.status == SlotStatus::CreatedBank
            && Some(update.slot) <= self.last_cut
            && is_unconfirmed
        {
            return Err(SessionEnd::Cut { slot: update.slot });
        }
        Ok(())
    }

    /// The live stream was asked for the round's filter.
    pub(in super::super) const fn asked(&mut self, generation: Generation) {
        if let Some(round) = &mut self.round {
            round.asked(generation);
        }
    }

    /// Which side stream is needed now: that of a revision, after so many attempts.
    pub(in super::super) fn side_needed(&self) -> Option<(Revision, u32)> {
        let round = self.round.as_ref()?;
        Some((round.subscriptions().revision(), round.side()?.attempts()))
    }

    /// What the side stream is to be asked for.
    pub(in super::super) fn side_request(&self) -> Option<Request> {
        let side = self.round.as_ref()?.side()?;
        Some(request(side.missing(), side.first_slot()))
    }

    /// Takes what came by the side stream.
    pub(in super::super) async fn apply_side(
        &mut self,
        came: Result<Vec<Assembled>, StreamError>,
    ) -> Result<(), SessionEnd> {
        let Some(round) = &mut self.round else {
            return Ok(());
        };
        let Some(side) = round.side_mut() else {
            return Ok(());
        };
        let received = Instant::now();
        let taken = match came {
            Ok(assembled) => side.take(assembled).map_err(SessionEnd::from),
            Err(error) => Err(error.into()),
        };
        match taken {
            Ok(actions) => self.perform_side(actions, received).await?,
            Err(fault) => round.side_failed(&fault, &self.tree),
        }
        self.advance_side(received).await
    }

    /// Emits to the changed webhooks what the live stream has emitted, and hands them over when nothing is missing.
    pub(super) async fn advance_side(&mut self, received: Instant) -> Result<(), SessionEnd> {
        let Some(round) = &mut self.round else {
            return Ok(());
        };
        match round.side_mut().map(|side| side.follow(&self.tree)) {
            None => {}
            Some(Ok(actions)) => self.perform_side(actions, received).await?,
            Some(Err(fault)) => round.side_failed(&fault.into(), &self.tree),
        }
        self.hand_over().await
    }

    /// Does what follows for the webhooks of the round alone, by what the live stream does not select for them.
    async fn perform_side(
        &mut self,
        actions: Vec<Action>,
        received: Instant,
    ) -> Result<(), SessionEnd> {
        let Some(side) = self.round.as_ref().and_then(FilterRound::side) else {
            return Ok(());
        };
        let missing = Arc::clone(side.missing());
        let served = Served {
            subscriptions: &missing,
            checkpoints: false,
        };
        self.perform(served, actions, received).await
    }

    /// Hands the changed webhooks over to the live stream, once it holds or has emitted all that they are owed. From
    /// here on a crash resumes from the checkpoint for them, too.
    pub(super) async fn hand_over(&mut self) -> Result<(), SessionEnd> {
        let ready = self
            .round
            .as_ref()
            .and_then(|round| round.ready(&self.tree));
        let Some(state) = ready else {
            return Ok(());
        };
        if !self.record_floor().await? {
            return Ok(());
        }
        let Some(round) = self.round.take() else {
            return Ok(());
        };
        let mut first_repeated = round.in_force_slot().unwrap_or(0);
        if let (Some(side), Some(last_cut)) = (round.side(), first_repeated.checked_sub(1)) {
            self.tree.supplement(&side.tree, last_cut)?;
            self.last_cut = self.last_cut.max(Some(last_cut));
            // The side stream has emitted what is confirmed, and nothing else.
            let confirmed = self.tree.watermark(Commitment::Confirmed);
            let unconfirmed = confirmed.map_or(0, |slot| slot.saturating_add(1));
            first_repeated = first_repeated.min(unconfirmed);
        }
        self.subscriptions = Arc::clone(round.subscriptions());
        self.narrowed_to = None;
        let changed = Served {
            subscriptions: round.changed(),
            checkpoints: false,
        };
        let actions = self.tree.emitted_since(first_repeated);
        self.tree.release_emitted();
        self.perform(changed, actions, Instant::now()).await?;
        // Once it is recorded, nothing of it would be asked for again.
        self.store_gathered().await?;
        self.record(state).await
    }
}

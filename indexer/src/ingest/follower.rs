//! Follower: keeps a session with the stream open, and resumes from the checkpoint after every outage.
//!
//! A session is one connection. It starts at the slot after the checkpoint and ends with the first
//! fault, of the stream or of the database; then the next one starts from the checkpoint again. What a
//! session held in memory is not needed: it is streamed again, and messages that were stored already
//! are known by their ids.
//!
//! Webhooks that come to watch more do not end a session: the filter is replaced on the live stream, and a side stream
//! reads what new addresses did before.

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use service_kit::CancellationToken;
use sluice_geyser::{Assembled, JoinedStream, RequestLimits, Servers};
use sluice_store::StoreError;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use super::{
    backfill::{Backfill, account_gaps},
    filter_probe::{Prober, Probing, probe},
    limit_probe, pauses,
    program_reader::ProgramReader,
    reconnect::Reconnect,
    refusals::Refusals,
    resume::ResumePolicy,
    session::{Session, SessionContext},
    session_end::SessionEnd,
    side_stream::SideConnection,
    slot_by_slot::SlotBySlot,
    subscription::request,
};
use crate::{events::subscription_index::Subscriptions, status::Stands};

/// Pause between two looks at whether anything was stored: a part of the shortest time that counts, and nothing to a machine.
const LOOK: Duration = Duration::from_millis(500);

/// The task that follows the chain.
#[derive(Debug)]
pub struct Follower {
    /// The stream's servers.
    pub servers: Servers,
    /// Whether it is found out how many keys the servers take in one request.
    pub probes_limits: bool,
    /// Whether closed accounts are asked for, by a filter that names no address.
    pub watches_closed: bool,
    /// The active webhooks.
    pub subscriptions: watch::Receiver<Arc<Subscriptions>>,
    /// Reads by RPC what the stream's server does not replay, where that is wanted.
    pub(crate) backfill: Option<Backfill>,
    /// What every session needs.
    pub(crate) context: SessionContext,
}

impl Follower {
    /// Follows the chain until `shutdown`, through every outage.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut reconnect = Reconnect::new();
        let mut policy = ResumePolicy::new();
        let mut refusals = Refusals::new(self.context.outbox.clone());
        let mut limits = None;
        let mut programs = ProgramReader::new(self.backfill.as_ref().map(Backfill::node).cloned());
        loop {
            // Stopping in the middle of anything is harmless: what is not committed is replayed.
            let end = tokio::select! {
                () = shutdown.cancelled() => return,
                ended = self.session(policy, &mut limits, &mut reconnect, &mut refusals, &mut programs) => match ended {
                    Err(end) => end,
                },
                stands = self.standstill() => SessionEnd::StoodStill(stands),
            };
            self.context.outbox.metrics.session_ended(end.kind());
            if let SessionEnd::Store(error) = &end {
                self.context.outbox.metrics.store_failed(error);
            }
            policy = policy.next(&end);
            self.context.status.disconnected(end.to_string());
            let pause = reconnect.failed(&end, rand::random());
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(pause) => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                filled = self.fill(policy, &mut reconnect) => policy = filled,
            }
        }
    }

    /// Returns when slots have come for so long of which nothing was stored that a new stream is to be tried. A session that is
    /// busy takes in no slots, and those that are read by RPC do not come: neither is ended.
    async fn standstill(&self) -> Stands {
        loop {
            sleep(LOOK).await;
            let standings = self.servers.standings();
            let newest = standings.iter().map(|standing| standing.slot).max();
            if let Some(stands) = self.context.status.renewal(newest, Instant::now()) {
                return stands;
            }
        }
    }

    /// Reads by RPC what a session under this policy would leave out. Returns the policy under which it leaves out
    /// nothing; or the same, where the node does not help: then the slots are reported lost.
    async fn fill(&self, policy: ResumePolicy, reconnect: &mut Reconnect) -> ResumePolicy {
        let Some(backfill) = self.backfill.as_ref().filter(|_| policy.lacks_slots()) else {
            return policy;
        };
        let (context, last) = (&self.context, policy.last_lacking());
        let caught_up = backfill.catch_up(context, &self.subscriptions, reconnect, last);
        match caught_up.await {
            Ok(()) => policy.caught_up(),
            Err(SessionEnd::Backfill(error)) => {
                tracing::error!(%error, "slots that no stream server replays are not read by RPC either");
                policy
            }
            Err(end) => policy.next(&end),
        }
    }

    /// Runs one session until it ends.
    async fn session(
        &self,
        policy: ResumePolicy,
        limits: &mut Option<RequestLimits>,
        reconnect: &mut Reconnect,
        refusals: &mut Refusals,
        programs: &mut ProgramReader,
    ) -> Result<Infallible, SessionEnd> {
        // It ends with the session; the next one goes on with what is not reported by then.
        let mut reports = JoinSet::new();
        let prober = Prober {
            servers: self.servers.clone(),
            limits: self.limits(limits, refusals).await?,
        };
        let mut changes = self.caught_up_subscriptions().await?;
        let mut wanted = refusals.wanted(&changes.borrow_and_update());
        pauses::report(&self.context.outbox).await?;
        if refusals.are_suspected() {
            let tried = Arc::clone(&wanted);
            let probed = probe(&prober, tried, Arc::default()).await?;
            refusals.record(&wanted, &probed).await?;
            wanted = probed.accepted;
        }
        let (mut stream, mut session) = self
            .open(
                policy,
                &prober,
                Arc::clone(&wanted),
                reconnect,
                &mut reports,
            )
            .await
            .inspect_err(|end| refusals.ended(end))?;
        refusals.others_are_served().await?;
        let mut accepted = Arc::clone(&wanted);
        let mut probing = Probing::default();
        let mut side = SideConnection::new();
        programs.begin_session();
        loop {
            if let Some(request) = session.begin_round(&accepted).await? {
                session.asked(stream.replace(request).await?);
                side.forget_failures();
            }
            if accepted.revision() != wanted.revision() {
                probing.begin(&prober, &wanted, session.subscriptions());
            }
            side.follow(&session, &prober);
            let reads = programs.advance(session.subscriptions(), session.emitted_through());
            session.hold_closes(reads);
            tokio::select! {
                part = stream.next_part() => {
                    let part = part.map_err(SessionEnd::from);
                    session.set_behind(stream.is_behind());
                    for each in part.inspect_err(|end| refusals.ended(end))? {
                        session.apply(each).await?;
                    }
                }
                came = side.stream.next_part() => session.apply_side(came).await?,
                read = programs.ended() => session.apply_read(read).await?,
                (tried, probed) = probing.ended() => {
                    refusals.record(&tried, &probed).await?;
                    accepted = probed.accepted;
                }
                changed = changes.changed() => {
                    changed.map_err(|_| SessionEnd::Unwatched)?;
                    wanted = refusals.wanted(&changes.borrow_and_update());
                    pauses::report(&self.context.outbox).await?;
                }
            }
        }
    }

    /// The watch, once it has the webhooks as they are now. A leader before this one may have put a webhook in force that
    /// is not watched here yet: a session without it would emit nothing to it, and what was in force is not asked for
    /// again. After this process took the lead no other one puts anything in force, so the revision is read now.
    async fn caught_up_subscriptions(
        &self,
    ) -> Result<watch::Receiver<Arc<Subscriptions>>, SessionEnd> {
        let newest = self.context.outbox.store.webhook_revision().await?;
        let mut watched = self.subscriptions.clone();
        let caught_up = watched.wait_for(|known| known.revision() >= newest).await;
        caught_up.map_err(|_| SessionEnd::Unwatched)?;
        Ok(watched)
    }

    /// How many keys the servers take in one request: found once, and again when a session was refused.
    async fn limits(
        &self,
        known: &mut Option<RequestLimits>,
        refusals: &Refusals,
    ) -> Result<RequestLimits, StoreError> {
        if self.probes_limits
            && (known.is_none() || refusals.are_suspected())
            && let Some(found) = limit_probe::find(&self.servers).await
        {
            let found = RequestLimits {
                keyless: found.keyless && self.watches_closed,
                ..found
            };
            let shared = limit_probe::address_limits(found);
            self.context
                .outbox
                .store
                .record_address_limits(shared)
                .await?;
            *known = Some(found);
        }
        let limits = known.unwrap_or_default();
        Ok(RequestLimits {
            keyless: limits.keyless && self.watches_closed,
            ..limits
        })
    }

    async fn open<'a>(
        &self,
        policy: ResumePolicy,
        prober: &Prober,
        subscriptions: Arc<Subscriptions>,
        reconnect: &'a mut Reconnect,
        reports: &mut JoinSet<()>,
    ) -> Result<(SlotBySlot, Session<'a>), SessionEnd> {
        let store = &self.context.outbox.store;
        let (state, known) = (store.resume_state().await?, store.known_accounts().await?);
        let resume = policy.resume_point(state, &subscriptions);
        let completing = self.backfill.as_ref().filter(|_| policy.is_completed());
        let from_slot = resume.from_slot.filter(|_| completing.is_none());
        let request = request(&subscriptions, from_slot);
        let mut stream = JoinedStream::open(&self.servers, request, prober.limits).await?;
        let mut session = Session::new(self.context.clone(), subscriptions, resume, reconnect);
        session.know(known);
        // What an earlier backfill owes need not wait for this session's first update.
        if completing.is_none() {
            self.report_account_gaps(&session, None, reports);
        }
        // A server that accepts the call may still refuse the request: what comes first shows that it was accepted.
        let mut first = stream.next_batch().await?;
        if let Some(backfill) = completing {
            let shown = (&mut stream, &mut first);
            let last = complete(backfill, &self.context, shown, &mut session).await?;
            self.report_account_gaps(&session, last, reports);
        }
        self.context.status.connected();
        tracing::info!(from_slot, "the stream is open");
        Ok((SlotBySlot::new(stream, first), session))
    }

    /// Reports beside the session which changes of accounts are lost, through `last` or where the session began.
    fn report_account_gaps(
        &self,
        session: &Session<'_>,
        last: Option<u64>,
        reports: &mut JoinSet<()>,
    ) {
        let node = self.backfill.as_ref().map(Backfill::node).cloned();
        let (context, served) = (self.context.clone(), session.served());
        let slots = (session.resume().clone(), last);
        reports.spawn(async move {
            if let Err(error) = account_gaps::report(context, node, served, slots).await {
                tracing::warn!(%error, "lost changes of accounts are not reported yet");
            }
        });
    }
}

/// Reads what a session lacks before the first slot of its stream, once it has shown which that is. Returns the last slot that
/// was read.
async fn complete(
    backfill: &Backfill,
    context: &SessionContext,
    (stream, shown): (&mut JoinedStream, &mut Vec<Assembled>),
    session: &mut Session<'_>,
) -> Result<Option<u64>, SessionEnd> {
    let first = loop {
        let begun = shown.iter().find_map(|each| match each {
            Assembled::InForce { slot, .. } => Some(*slot),
            _ => None,
        });
        if let Some(slot) = begun {
            break slot;
        }
        shown.extend(stream.next_batch().await?);
    };
    let last = first.checked_sub(1);
    if let Some(last) = last {
        backfill.complete(context, session, last).await?;
    }
    Ok(last)
}

#[cfg(test)]
mod tests;

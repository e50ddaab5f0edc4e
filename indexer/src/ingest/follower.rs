//! Follower: keeps a session with the stream open, and resumes from the checkpoint after every outage.
//!
//! A session is one connection. It starts at the slot after the checkpoint and ends with the first
//! fault, of the stream or of the database; then the next one starts from the checkpoint again. What a
//! session held in memory is not needed: it is streamed again, and messages that were stored already
//! are known by their ids.
//!
//! Webhooks that come to watch more do not end a session: the filter is replaced on the live stream, and a side stream
//! reads what new addresses did before.

use std::{convert::Infallible, sync::Arc};

use service_kit::{Backoff, CancellationToken};
use sluice_geyser::{Endpoint, Stream};
use tokio::{sync::watch, time::sleep};

use super::{
    filter_probe::{Probing, probe, request_bytes},
    reconnect::Reconnect,
    refusals::Refusals,
    resume::ResumePolicy,
    session::{Session, SessionContext},
    session_end::SessionEnd,
    side_stream::SideStream,
    subscription::request,
};
use crate::events::subscription_index::Subscriptions;

/// The task that follows the chain.
#[derive(Debug)]
pub struct Follower {
    /// The stream's server.
    pub endpoint: Endpoint,
    /// The active webhooks.
    pub subscriptions: watch::Receiver<Arc<Subscriptions>>,
    /// What every session needs.
    pub(crate) context: SessionContext,
}

impl Follower {
    /// Follows the chain until `shutdown`, through every outage.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut reconnect = Reconnect::new();
        let mut policy = ResumePolicy::new();
        let mut refusals = Refusals::new(self.context.outbox.clone());
        loop {
            // Stopping in the middle of anything is harmless: what is not committed is replayed.
            let end = tokio::select! {
                () = shutdown.cancelled() => return,
                ended = self.session(policy, &mut reconnect, &mut refusals) => match ended {
                    Err(end) => end,
                },
            };
            self.context.outbox.metrics.session_ended(end.kind());
            policy = policy.next(&end);
            self.context.status.disconnected(end.to_string());
            let pause = reconnect.failed(&end, rand::random());
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// Runs one session until it ends.
    async fn session(
        &self,
        policy: ResumePolicy,
        reconnect: &mut Reconnect,
        refusals: &mut Refusals,
    ) -> Result<Infallible, SessionEnd> {
        let mut changes = self.subscriptions.clone();
        let mut wanted = refusals.wanted(&changes.borrow_and_update());
        if refusals.are_suspected() {
            let tried = Arc::clone(&wanted);
            let probed = probe(self.endpoint.clone(), tried, Arc::default()).await?;
            refusals.record(&wanted, &probed).await?;
            wanted = probed.accepted;
        }
        let mut asked_bytes = request_bytes(&request(&wanted, None));
        let (mut stream, mut session) = self
            .open(policy, Arc::clone(&wanted), reconnect)
            .await
            .inspect_err(|end| refusals.ended(end, asked_bytes))?;
        refusals.others_are_served().await?;
        let mut accepted = Arc::clone(&wanted);
        let mut probing = Probing::default();
        let mut side = SideStream::Closed;
        let mut side_open = None;
        let mut pauses = Backoff::new();
        loop {
            if let Some(request) = session.begin_round(&accepted).await? {
                asked_bytes = request_bytes(&request);
                stream.replace(request).await?;
                pauses.reset();
            }
            if accepted.revision() != wanted.revision() {
                probing.begin(&self.endpoint, &wanted, session.subscriptions());
            }
            let needed = session.side_needed();
            if needed != side_open {
                side_open = needed;
                side = match (session.side_request(), needed) {
                    (Some(request), Some((_, failures))) => {
                        let pause = (failures > 0).then(|| pauses.next_pause(rand::random()));
                        let pause = pause.unwrap_or_default();
                        SideStream::open(self.endpoint.clone(), request, pause)
                    }
                    _ => SideStream::Closed,
                };
            }
            tokio::select! {
                update = stream.next() => {
                    let update = update.map_err(SessionEnd::from);
                    let update = update.inspect_err(|end| refusals.ended(end, asked_bytes))?;
                    session.apply(update).await?;
                }
                update = side.next() => session.apply_side(update).await?,
                (tried, probed) = probing.ended() => {
                    refusals.record(&tried, &probed).await?;
                    accepted = probed.accepted;
                }
                changed = changes.changed() => {
                    changed.map_err(|_| SessionEnd::Unwatched)?;
                    wanted = refusals.wanted(&changes.borrow_and_update());
                }
            }
        }
    }

    async fn open<'a>(
        &self,
        policy: ResumePolicy,
        subscriptions: Arc<Subscriptions>,
        reconnect: &'a mut Reconnect,
    ) -> Result<(Stream, Session<'a>), SessionEnd> {
        let state = self.context.outbox.store.resume_state().await?;
        let resume = policy.resume_point(state, &subscriptions);
        let from_slot = resume.from_slot;
        let mut stream = Stream::open(&self.endpoint, request(&subscriptions, from_slot)).await?;
        let mut session = Session::new(self.context.clone(), subscriptions, resume, reconnect);
        // Servers keep only the newest of the requests they have not looked at yet. A filter change sent
        // right after the first request could make them forget its `from_slot`, so the first update is
        // awaited: it shows that the first request was looked at.
        let first = stream.next().await?;
        self.context.status.connected();
        tracing::info!(from_slot, "the stream is open");
        session.apply(first).await?;
        Ok((stream, session))
    }
}

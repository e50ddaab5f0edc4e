//! Follower: keeps a session with the stream open, and resumes from the checkpoint after every outage.
//!
//! A session is one connection. It starts at the slot after the checkpoint and ends with the first
//! fault, of the stream or of the database; then the next one starts from the checkpoint again. What a
//! session held in memory is not needed: it is streamed again, and messages that were stored already
//! are known by their ids.
//!
//! A session also ends when webhooks come to watch more than it streams. The next one starts at the slot at
//! which the first of them was written, under the new filter, so that none misses anything.

use std::{sync::Arc, time::Duration};

use service_kit::CancellationToken;
use sluice_geyser::{Endpoint, Stream};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{
    reconnect::Reconnect,
    resume::ResumePolicy,
    session::{Session, SessionContext},
    session_end::SessionEnd,
    subscription::request,
};
use crate::events::subscription_index::Subscriptions;

/// Shortest life of a session that ends because webhooks watch more: many that are written one after the
/// other share one.
const SHORTEST_SESSION: Duration = Duration::from_secs(1);

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
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut reconnect = Reconnect::new();
        let mut policy = ResumePolicy::new();
        loop {
            // Stopping in the middle of anything is harmless: what is not committed is replayed.
            let end = tokio::select! {
                () = shutdown.cancelled() => return,
                end = self.session(policy, &mut reconnect) => end,
            };
            self.context.outbox.metrics.session_ended(end.kind());
            policy = policy.next(&end);
            if matches!(end, SessionEnd::FilterGrew) {
                continue;
            }
            self.context.status.disconnected(end.to_string());
            let pause = reconnect.failed(&end, rand::random());
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// Runs one session, and says why it ended.
    async fn session(&mut self, policy: ResumePolicy, reconnect: &mut Reconnect) -> SessionEnd {
        let subscriptions = Arc::clone(&self.subscriptions.borrow_and_update());
        let (mut stream, mut session) = match self.open(policy, subscriptions, reconnect).await {
            Ok(open) => open,
            Err(end) => return end,
        };
        let earliest_end = Instant::now() + SHORTEST_SESSION;
        let mut changes = self.subscriptions.clone();
        let mut grew = false;
        loop {
            let done = tokio::select! {
                update = stream.next() => match update {
                    Ok(update) => session.apply(update).await,
                    Err(error) => Err(error.into()),
                },
                changed = changes.changed(), if !grew => {
                    let subscriptions = Arc::clone(&changes.borrow_and_update());
                    grew = subscriptions.grew_since(session.subscriptions());
                    match changed {
                        Err(_) => Err(SessionEnd::Unwatched),
                        Ok(()) if grew => Ok(()),
                        Ok(()) => narrow(&mut stream, &mut session, subscriptions).await,
                    }
                }
                () = sleep_until(earliest_end), if grew => Err(SessionEnd::FilterGrew),
            };
            if let Err(end) = done {
                return end;
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

/// Makes a session serve fewer webhooks.
async fn narrow(
    stream: &mut Stream,
    session: &mut Session<'_>,
    subscriptions: Arc<Subscriptions>,
) -> Result<(), SessionEnd> {
    stream.replace(request(&subscriptions, None)).await?;
    session.narrow(subscriptions);
    Ok(())
}

//! Side stream: a second connection that replays what new addresses did before the live stream's filter had them.

use std::{pin::Pin, time::Duration};

use service_kit::Backoff;
use sluice_geyser::{Assembled, JoinedStream, Request, StreamError};
use sluice_store::Revision;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    filter_probe::Prober, session::Session, session_end::SessionEnd, slot_by_slot::SlotBySlot,
};

/// Time without anything of the chain after which a side stream is given up. A stream itself ends on silence; this covers one
/// that pings, and never replays what it was asked for. As long as the market waits for a slot.
const SILENCE: Duration = Duration::from_secs(30);

/// The connection, while it is needed.
pub(super) enum SideStream {
    /// It is not needed.
    Closed,
    /// It is being opened.
    Opening(Pin<Box<dyn Future<Output = Result<JoinedStream, StreamError>> + Send>>),
    /// It is open, and counts as silent at this time.
    Open(Box<SlotBySlot>, Instant),
}

/// The connection that a session needs now.
pub(super) struct SideConnection {
    pub(super) stream: SideStream,
    /// For which revision it was opened, after so many attempts.
    open_for: Option<(Revision, u32)>,
    pauses: Backoff,
}

impl SideConnection {
    pub(super) fn new() -> Self {
        Self {
            stream: SideStream::Closed,
            open_for: None,
            pauses: Backoff::new(),
        }
    }

    /// The next failures are those of another round.
    pub(super) fn forget_failures(&mut self) {
        self.pauses.reset();
    }

    /// Opens it, or closes it, as the session needs it.
    pub(super) fn follow(&mut self, session: &Session<'_>, prober: &Prober) {
        let needed = session.side_needed();
        if needed == self.open_for {
            return;
        }
        self.open_for = needed;
        self.stream = match (session.side_request(), needed) {
            (Some(request), Some((_, attempts))) => {
                let pause = (attempts > 0).then(|| self.pauses.next_pause(rand::random()));
                SideStream::open(prober, request, pause.unwrap_or_default())
            }
            _ => SideStream::Closed,
        };
    }
}

impl SideStream {
    /// Opens it after a pause.
    fn open(prober: &Prober, request: Request, pause: Duration) -> Self {
        let (servers, limits) = (prober.servers.counted_apart(), prober.limits);
        Self::Opening(Box::pin(async move {
            sleep(pause).await;
            JoinedStream::open(servers, request, limits).await
        }))
    }

    /// What it gives out next; nothing while it is closed. Cancel-safe.
    ///
    /// # Errors
    /// Why it is over; it is closed then.
    pub(super) async fn next_part(&mut self) -> Result<Vec<Assembled>, SessionEnd> {
        let came = self.next_within(SILENCE).await;
        if came.is_err() {
            *self = Self::Closed;
        }
        came
    }

    async fn next_within(&mut self, silence: Duration) -> Result<Vec<Assembled>, SessionEnd> {
        loop {
            match self {
                Self::Closed => std::future::pending().await,
                Self::Opening(opening) => {
                    let stream = SlotBySlot::new(opening.await?, Vec::new());
                    *self = Self::Open(Box::new(stream), Instant::now() + silence);
                }
                Self::Open(stream, silent_at) => {
                    let came = tokio::select! {
                        // What came while the session was busy is looked at before the time that it was busy for.
                        biased;
                        came = stream.next_part() => came?,
                        () = sleep_until(*silent_at) => return Err(SessionEnd::Silent(silence)),
                    };
                    *silent_at = Instant::now() + silence;
                    return Ok(came);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_geyser::{RequestLimits, Servers, SlotStatus, scripted::ScriptedServer};
    use sluice_testkit::updates::{slot, whole};
    use tokio::time::timeout;

    use super::*;

    /// Several pings.
    const SHORT: Duration = Duration::from_millis(300);

    const PING: Duration = Duration::from_millis(20);

    /// No step takes longer unless something hangs.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_server_that_pings_and_replays_nothing_is_given_up() {
        let mut server = ScriptedServer::start().await.expect("listens");
        let servers = Servers::new([server.endpoint()]);
        let request = Request {
            slots: Some("slots".to_owned()),
            blocks_meta: Some("blocks".to_owned()),
            from_slot: Some(11),
            ..Request::default()
        };
        let prober = Prober {
            servers,
            limits: RequestLimits::default(),
        };
        let mut side = SideStream::open(&prober, request, Duration::ZERO);
        let serving = tokio::spawn(async move {
            let mut connection = server.accept().await;
            let request = connection.received().await.expect("the client is there");
            let name = request.request.slots.expect("always");
            // It brings a slot, and from then on nothing.
            for update in whole(&name, 11) {
                connection.send(update).await.expect("the client is there");
            }
            let complete = slot(&name, 11, SlotStatus::Processed);
            connection
                .send(complete)
                .await
                .expect("the client is there");
            while connection.ping().await.is_ok() {
                sleep(PING).await;
            }
        });
        let mut came = Vec::new();
        let end = loop {
            let next = timeout(PATIENCE, side.next_within(SHORT)).await;
            match next.expect("does not wait for ever") {
                Ok(part) => came.extend(part),
                Err(end) => break end,
            }
        };
        assert!(matches!(end, SessionEnd::Silent(SHORT)), "{end}");
        assert!(!came.is_empty(), "what it brought was given out");
        drop(side);
        serving.await.expect("the server notices");
    }
}

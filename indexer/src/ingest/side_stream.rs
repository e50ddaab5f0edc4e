//! Side stream: a second connection that replays what new addresses did before the live stream's filter had them.

use std::{pin::Pin, time::Duration};

use service_kit::Backoff;
use sluice_geyser::{Assembled, JoinedStream, Request, StreamError};
use sluice_store::Revision;
use tokio::time::sleep;

use super::{filter_probe::Prober, session::Session, slot_by_slot::SlotBySlot};

/// The connection, while it is needed.
pub(super) enum SideStream {
    /// It is not needed.
    Closed,
    /// It is being opened.
    Opening(Pin<Box<dyn Future<Output = Result<JoinedStream, StreamError>> + Send>>),
    /// It is open.
    Open(Box<SlotBySlot>),
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
    pub(super) async fn next_part(&mut self) -> Result<Vec<Assembled>, StreamError> {
        loop {
            let result = match self {
                Self::Closed => std::future::pending().await,
                Self::Opening(opening) => match opening.await {
                    Ok(stream) => {
                        *self = Self::Open(Box::new(SlotBySlot::new(stream, Vec::new())));
                        continue;
                    }
                    Err(error) => Err(error),
                },
                Self::Open(stream) => stream.next_part().await,
            };
            if result.is_err() {
                *self = Self::Closed;
            }
            return result;
        }
    }
}

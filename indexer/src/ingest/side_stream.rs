//! Side stream: a second connection that replays what new addresses did before the live stream's filter had them.

use std::{pin::Pin, time::Duration};

use sluice_geyser::{Assembled, JoinedStream, Request, StreamError};
use tokio::time::sleep;

use super::filter_probe::Prober;

/// The connection, while it is needed.
pub(super) enum SideStream {
    /// It is not needed.
    Closed,
    /// It is being opened.
    Opening(Pin<Box<dyn Future<Output = Result<JoinedStream, StreamError>> + Send>>),
    /// It is open.
    Open(Box<JoinedStream>),
}

impl SideStream {
    /// Opens it after a pause.
    pub(super) fn open(prober: &Prober, request: Request, pause: Duration) -> Self {
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
    pub(super) async fn next_batch(&mut self) -> Result<Vec<Assembled>, StreamError> {
        loop {
            let result = match self {
                Self::Closed => std::future::pending().await,
                Self::Opening(opening) => match opening.await {
                    Ok(stream) => {
                        *self = Self::Open(Box::new(stream));
                        continue;
                    }
                    Err(error) => Err(error),
                },
                Self::Open(stream) => stream.next_batch().await,
            };
            if result.is_err() {
                *self = Self::Closed;
            }
            return result;
        }
    }
}

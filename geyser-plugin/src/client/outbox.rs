//! Bounded queue between a subscriber's task and the transport, and how a subscription ends.

use std::{
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{sync::mpsc, time};
use tokio_stream::Stream;
use tonic::Status;
use yellowstone_grpc_proto::{geyser::SubscribeUpdate, prost::Message as _};

use crate::{config::Limits, slots::ReplayError};

/// How long a replay waits for the subscriber to make room for one more update. A replay may exceed
/// the queue, so it waits where live updates do not; a subscriber that does not read is ended.
const REPLAY_STALL: Duration = Duration::from_secs(10);

/// Why a client's task stops.
pub(super) enum End {
    /// The stream ends with this status.
    With(Status),
    /// The stream ends without a status: the subscriber is gone, or has sent what cannot be read.
    Gone,
}

impl From<ReplayError> for End {
    fn from(error: ReplayError) -> Self {
        let message = error.to_string();
        Self::With(match error {
            ReplayError::TooOld { .. } => Status::out_of_range(message),
            ReplayError::Disabled | ReplayError::NotReady => Status::internal(message),
        })
    }
}

/// Creates both ends of a queue.
pub(super) fn queue(limits: &Limits) -> (Outbox, ClientStream) {
    let (sender, receiver) = mpsc::channel(limits.client_messages);
    let queued_bytes = Arc::new(AtomicUsize::new(0));
    let end = Arc::new(OnceLock::new());
    let outbox = Outbox {
        sender,
        max_bytes: limits.client_bytes,
        queued_bytes: Arc::clone(&queued_bytes),
        end: Arc::clone(&end),
    };
    let stream = ClientStream {
        receiver,
        queued_bytes,
        end,
    };
    (outbox, stream)
}

/// The filling end of a subscriber's queue.
pub(super) struct Outbox {
    sender: mpsc::Sender<Queued>,
    max_bytes: usize,
    queued_bytes: Arc<AtomicUsize>,
    end: Arc<OnceLock<Status>>,
}

struct Queued {
    update: SubscribeUpdate,
    bytes: usize,
}

impl Outbox {
    /// Waits until its reader is gone.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }

    /// Ends the queue: what waits in it is still read, then `status`.
    pub fn end_with(self, status: Status) {
        // Taken by value, so it cannot be set already.
        let _ = self.end.set(status);
    }

    /// Queues an update if there is room.
    pub fn offer(&self, update: SubscribeUpdate) {
        // A full queue carries enough already.
        let _ = self.push(update);
    }

    /// Queues an update, or ends the subscription when the queue is full.
    pub fn push(&self, update: SubscribeUpdate) -> Result<(), End> {
        let bytes = update.encoded_len();
        let lagged = || End::With(Status::internal("lagged to send an update"));
        if !self.has_room(bytes) {
            return Err(lagged());
        }
        // Counted first: the reader may take the update out before `try_send` returns.
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        match self.sender.try_send(Queued { update, bytes }) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(lagged()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(End::Gone),
        }
    }

    /// Queues an update, waiting for room.
    pub async fn wait_push(&self, update: SubscribeUpdate) -> Result<(), End> {
        /// How often the byte bound is looked at again; only a replay of large accounts waits on it.
        const POLL: Duration = Duration::from_millis(5);
        let bytes = update.encoded_len();
        let queue = async {
            while !self.has_room(bytes) {
                time::sleep(POLL).await;
            }
            self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.sender.send(Queued { update, bytes }).await
        };
        match time::timeout(REPLAY_STALL, queue).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(End::Gone),
            Err(_) => Err(End::With(Status::internal("lagged to send an update"))),
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        let queued = self.queued_bytes.load(Ordering::Relaxed);
        // One update larger than the bound must still pass an empty queue.
        queued == 0 || queued.saturating_add(bytes) <= self.max_bytes
    }
}

/// The draining end of a subscriber's queue: everything queued, then the status that ended it.
#[derive(Debug)]
pub struct ClientStream {
    receiver: mpsc::Receiver<Queued>,
    queued_bytes: Arc<AtomicUsize>,
    end: Arc<OnceLock<Status>>,
}

impl std::fmt::Debug for Queued {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Queued({} bytes)", self.bytes)
    }
}

impl Stream for ClientStream {
    type Item = Result<SubscribeUpdate, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context).map(|queued| match queued {
            Some(Queued { update, bytes }) => {
                self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
                Some(Ok(update))
            }
            // The status is given once; after it the transport does not poll again.
            None => self.end.get().cloned().map(Err),
        })
    }
}

//! One subscriber's task: reads its requests, follows its stream, fills its queue.

use std::{
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{broadcast, mpsc},
    time::{self, MissedTickBehavior},
};
use tokio_stream::{Stream, StreamExt};
use tonic::Status;
use yellowstone_grpc_proto::{
    geyser::{
        SubscribeRequest, SubscribeUpdate, SubscribeUpdatePing, SubscribeUpdatePong,
        subscribe_update::UpdateOneof,
    },
    prost::Message as _,
};

use crate::{
    filter::Filter,
    hub::{Hub, Item},
    message::Event,
    shutdown::Stopping,
    slots::ReplayError,
};

/// How often every subscriber is pinged, so that proxies keep idle streams open.
pub const PING_INTERVAL: Duration = Duration::from_secs(10);

/// How long a replay waits for the subscriber to make room for one more update. A replay may exceed
/// the queue, so it waits where live updates do not; a subscriber that does not read is ended.
const REPLAY_STALL: Duration = Duration::from_secs(10);

/// Bounds of a subscriber's queue.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// Updates waiting.
    pub messages: usize,
    /// Encoded bytes waiting.
    pub bytes: usize,
}

/// Starts serving a subscriber; its task ends with the returned stream or with the server.
pub fn spawn<Requests>(
    hub: Arc<Hub>,
    limits: ClientLimits,
    requests: Requests,
    stopping: Stopping,
) -> ClientStream
where
    Requests: Stream<Item = Result<SubscribeRequest, Status>> + Send + Unpin + 'static,
{
    let (sender, receiver) = mpsc::channel(limits.messages);
    let queued_bytes = Arc::new(AtomicUsize::new(0));
    let end = Arc::new(OnceLock::new());
    let outbox = Outbox {
        sender,
        max_bytes: limits.bytes,
        queued_bytes: Arc::clone(&queued_bytes),
    };
    let client_end = Arc::clone(&end);
    tokio::spawn(async move {
        let mut client = Client {
            hub,
            outbox,
            filter: Filter::default(),
        };
        if let Err(End::With(status)) = client.run(requests, stopping).await {
            log::info!("a subscription ends: {}", status.message());
            // Set only here, so it cannot be set already.
            let _ = client_end.set(status);
        }
        // Closes the queue, at whose end the stream looks for the status.
        drop(client);
    });
    ClientStream {
        receiver,
        queued_bytes,
        end,
    }
}

/// Why a client's task stops.
enum End {
    /// The stream ends with this status.
    With(Status),
    /// The subscriber is gone.
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

struct Client {
    hub: Arc<Hub>,
    outbox: Outbox,
    filter: Filter,
}

impl Client {
    async fn run<Requests>(
        &mut self,
        mut requests: Requests,
        mut stopping: Stopping,
    ) -> Result<(), End>
    where
        Requests: Stream<Item = Result<SubscribeRequest, Status>> + Send + Unpin + 'static,
    {
        let (mut stream, _) = self.hub.attach(self.filter.commitment(), None)?;
        let mut ping = time::interval(PING_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ping.reset();
        let mut reading = true;
        loop {
            tokio::select! {
                biased;
                () = stopping.begun() => {
                    return Err(End::With(Status::unavailable("the server is shutting down")));
                }
                () = self.outbox.sender.closed() => return Err(End::Gone),
                request = requests.next(), if reading => match request {
                    // A subscriber may close its side and keep listening.
                    None => reading = false,
                    Some(Err(_)) => return Err(End::Gone),
                    Some(Ok(request)) => {
                        if let Some(attached) = self.handle(request).await? {
                            stream = attached;
                        }
                    }
                },
                _ = ping.tick() => self.outbox.push(note(UpdateOneof::Ping(SubscribeUpdatePing {})))?,
                item = stream.recv() => self.deliver(item)?,
            }
        }
    }

    /// Serves a request; returns a stream when the client must change over to it.
    async fn handle(
        &mut self,
        request: SubscribeRequest,
    ) -> Result<Option<broadcast::Receiver<Item>>, End> {
        if let Some(ping) = request.ping {
            let pong = SubscribeUpdatePong { id: ping.id };
            self.outbox.push(note(UpdateOneof::Pong(pong)))?;
            return Ok(None);
        }
        let filter = Filter::compile(&request).map_err(|error| {
            End::With(Status::invalid_argument(format!(
                "failed to create filter: {error}"
            )))
        })?;
        let commitment = filter.commitment();
        let same_stream = commitment == self.filter.commitment();
        self.filter = filter;
        if same_stream && request.from_slot.is_none() {
            return Ok(None);
        }
        let (stream, missed) = self.hub.attach(commitment, request.from_slot)?;
        let mut updates = Vec::new();
        for event in &missed {
            self.filter.render(event, &mut updates);
            for update in updates.drain(..) {
                self.outbox.wait_push(update).await?;
            }
        }
        Ok(Some(stream))
    }

    fn deliver(&self, item: Result<Item, broadcast::error::RecvError>) -> Result<(), End> {
        match item {
            Ok(Item::Batch(events)) => self.deliver_batch(&events),
            Ok(Item::Lost) | Err(broadcast::error::RecvError::Lagged(_)) => Err(End::With(
                Status::internal("lagged to receive geyser messages"),
            )),
            Err(broadcast::error::RecvError::Closed) => Err(End::With(Status::unavailable(
                "the server is shutting down",
            ))),
        }
    }

    fn deliver_batch(&self, events: &[Event]) -> Result<(), End> {
        let mut updates = Vec::new();
        for event in events {
            self.filter.render(event, &mut updates);
            for update in updates.drain(..) {
                self.outbox.push(update)?;
            }
        }
        Ok(())
    }
}

/// An update that answers no filter.
#[expect(
    clippy::disallowed_methods,
    reason = "an update says when it was made; a clock of the services is out of reach here"
)]
fn note(update: UpdateOneof) -> SubscribeUpdate {
    SubscribeUpdate {
        filters: Vec::new(),
        update_oneof: Some(update),
        created_at: Some(SystemTime::now().into()),
    }
}

/// The filling end of a subscriber's queue.
struct Outbox {
    sender: mpsc::Sender<Queued>,
    max_bytes: usize,
    queued_bytes: Arc<AtomicUsize>,
}

struct Queued {
    update: SubscribeUpdate,
    bytes: usize,
}

impl Outbox {
    /// Queues an update, or ends the subscription when the queue is full.
    fn push(&self, update: SubscribeUpdate) -> Result<(), End> {
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
    async fn wait_push(&self, update: SubscribeUpdate) -> Result<(), End> {
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

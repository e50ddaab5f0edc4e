//! One subscriber's task: follows its stream under the newest filter and fills its queue.
//!
//! The subscriber joins the live stream at the call, under an empty filter, and what passes before its first request
//! is applied is dropped. Nothing acknowledges a request: a pong comes from the reader of requests, before the filter
//! that was sent ahead of it is in force.

mod outbox;
mod requests;

pub use outbox::ClientStream;

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::{
    sync::{broadcast, watch},
    time::{self, MissedTickBehavior},
};
use tokio_stream::Stream;
use tonic::Status;
use yellowstone_grpc_proto::geyser::{
    SubscribeRequest, SubscribeUpdatePing, subscribe_update::UpdateOneof,
};

use self::{
    outbox::{End, Outbox},
    requests::{Pending, note},
};
use crate::{
    config::Config,
    filter::Filter,
    hub::{Hub, Item},
    message::{Commitment, Event, Slot},
    shutdown::Stopping,
};

/// How often every subscriber is pinged, so that proxies keep idle streams open.
pub const PING_INTERVAL: Duration = Duration::from_secs(10);

/// Starts serving a subscriber; its task ends with the returned stream or with the server.
pub fn spawn<Requests>(
    hub: Arc<Hub>,
    config: Arc<Config>,
    requests: Requests,
    mut stopping: Stopping,
) -> ClientStream
where
    Requests: Stream<Item = Result<SubscribeRequest, Status>> + Send + Unpin + 'static,
{
    let (outbox, stream) = outbox::queue(&config.limits);
    let (newest, pending) = watch::channel(None);
    let client = Client::join(hub, config.replay_delay());
    tokio::spawn(async move {
        let ended = tokio::select! {
            biased;
            () = stopping.begun() => Err(shutting_down()),
            () = outbox.closed() => Err(End::Gone),
            ended = requests::read(requests, newest, &outbox, &config.grpc) => ended,
            never = keep_alive(&outbox) => match never {},
            ended = client.follow(pending, &outbox) => ended,
        };
        match ended {
            Ok(never) => match never {},
            // Dropping the queue ends the stream without a status.
            Err(End::Gone) => {}
            Err(End::With(status)) => {
                log::info!("a subscription ends: {}", status.message());
                outbox.end_with(status);
            }
        }
    });
    stream
}

fn shutting_down() -> End {
    End::With(Status::unavailable("the server is shutting down"))
}

/// Pings until the subscription ends.
async fn keep_alive(outbox: &Outbox) -> Infallible {
    let mut ping = time::interval(PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    loop {
        ping.tick().await;
        outbox.offer(note(UpdateOneof::Ping(SubscribeUpdatePing {})));
    }
}

/// A subscriber on its stream.
struct Client {
    hub: Arc<Hub>,
    stream: broadcast::Receiver<Item>,
    commitment: Commitment,
    /// The request in force, `None` before the first.
    request: Option<Arc<Pending>>,
    replay_delay: Duration,
}

impl Client {
    fn join(hub: Arc<Hub>, replay_delay: Duration) -> Self {
        let commitment = Commitment::default();
        Self {
            stream: hub.subscribe(commitment),
            hub,
            commitment,
            request: None,
            replay_delay,
        }
    }

    async fn follow(
        mut self,
        mut pending: watch::Receiver<Option<Arc<Pending>>>,
        outbox: &Outbox,
    ) -> Result<Infallible, End> {
        loop {
            tokio::select! {
                biased;
                Ok(()) = pending.changed() => {
                    let newest = pending.borrow_and_update().clone();
                    if let Some(request) = newest {
                        self.apply(request, outbox).await?;
                    }
                }
                item = self.stream.recv() => self.deliver(item, outbox)?,
            }
        }
    }

    /// Puts a request in force: for what happens from now on, not for what waits to be sent.
    async fn apply(&mut self, request: Arc<Pending>, outbox: &Outbox) -> Result<(), End> {
        for _ in 0..self.stream.len() {
            match self.stream.try_recv() {
                Ok(item) => self.deliver(Ok(item), outbox)?,
                Err(broadcast::error::TryRecvError::Lagged(_)) => return Err(lagged()),
                Err(_) => break,
            }
        }
        let commitment = request.filter.commitment();
        if commitment != self.commitment {
            self.commitment = commitment;
            self.stream = self.hub.subscribe(commitment);
        }
        let from_slot = request.from_slot;
        self.request = Some(request);
        match from_slot {
            Some(from_slot) => self.replay(from_slot, outbox).await,
            None => Ok(()),
        }
    }

    /// Sends the frozen blocks since a slot. Live updates wait meanwhile: a block that is frozen before the replay is
    /// put together comes in both parts, and of the slot that is open then only the rest comes.
    async fn replay(&self, from_slot: Slot, outbox: &Outbox) -> Result<(), End> {
        time::sleep(self.replay_delay).await;
        let mut updates = Vec::new();
        for event in self.hub.replay(from_slot, self.commitment)? {
            if let Some(filter) = self.filter() {
                filter.render(&event, &mut updates);
            }
            for update in updates.drain(..) {
                outbox.wait_push(update).await?;
            }
        }
        Ok(())
    }

    fn filter(&self) -> Option<&Filter> {
        self.request.as_ref().map(|request| &request.filter)
    }

    fn deliver(
        &self,
        item: Result<Item, broadcast::error::RecvError>,
        outbox: &Outbox,
    ) -> Result<(), End> {
        match item {
            Ok(Item::Batch(events)) => self.deliver_batch(&events, outbox),
            Ok(Item::Lost) | Err(broadcast::error::RecvError::Lagged(_)) => Err(lagged()),
            Err(broadcast::error::RecvError::Closed) => Err(shutting_down()),
        }
    }

    fn deliver_batch(&self, events: &[Event], outbox: &Outbox) -> Result<(), End> {
        let Some(filter) = self.filter() else {
            return Ok(());
        };
        let mut updates = Vec::new();
        for event in events {
            filter.render(event, &mut updates);
            for update in updates.drain(..) {
                outbox.push(update)?;
            }
        }
        Ok(())
    }
}

fn lagged() -> End {
    End::With(Status::internal("lagged to receive geyser messages"))
}

//! Reader of a subscriber's requests: answers pings at once and keeps the newest filter for the stream to take.

use std::{convert::Infallible, future, sync::Arc, time::SystemTime};

use tokio::sync::watch;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;
use yellowstone_grpc_proto::geyser::{
    SubscribeRequest, SubscribeUpdate, SubscribeUpdatePong, subscribe_update::UpdateOneof,
};

use super::outbox::{End, Outbox};
use crate::{config::GrpcConfig, filter::Filter, message::Slot};

/// A request that waits to be applied. A newer one takes its place, and with it a `from_slot` that only this one had.
pub(super) struct Pending {
    pub filter: Filter,
    pub from_slot: Option<Slot>,
}

/// The newest request, taken by the task that applies it.
pub(super) type Newest = watch::Sender<Option<Arc<Pending>>>;

/// Reads until the subscription has to end.
pub(super) async fn read<Requests>(
    mut requests: Requests,
    newest: Newest,
    outbox: &Outbox,
    config: &GrpcConfig,
) -> Result<Infallible, End>
where
    Requests: Stream<Item = Result<SubscribeRequest, Status>> + Send + Unpin,
{
    while let Some(request) = requests.next().await {
        // Too large a request, a broken one and a broken connection look alike here, and end alike.
        let request = request.map_err(|_| End::Gone)?;
        if let Some(ping) = request.ping {
            let pong = SubscribeUpdatePong { id: ping.id };
            outbox.wait_push(note(UpdateOneof::Pong(pong))).await?;
            continue;
        }
        let filter = Filter::compile(&request, config).map_err(|error| {
            End::With(Status::invalid_argument(format!(
                "failed to create filter: {error}"
            )))
        })?;
        newest.send_replace(Some(Arc::new(Pending {
            filter,
            from_slot: request.from_slot,
        })));
    }
    // A subscriber may close its side and keep listening.
    future::pending().await
}

/// An update that answers no filter.
#[expect(
    clippy::disallowed_methods,
    reason = "an update says when it was made; a clock of the services is out of reach here"
)]
pub(super) fn note(update: UpdateOneof) -> SubscribeUpdate {
    SubscribeUpdate {
        filters: Vec::new(),
        update_oneof: Some(update),
        created_at: Some(SystemTime::now().into()),
    }
}

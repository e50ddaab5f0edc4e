//! gRPC service of the scripted server: `Subscribe` is played, every other call is unimplemented.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{StreamExt, stream::BoxStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use yellowstone_grpc_proto::geyser as proto;

use super::{connection::Connection, decode};

/// Messages a script may send ahead of the client. Small, so that a client that does not read is
/// felt by the script instead of growing the test's memory.
pub(super) const PLAYED_AHEAD: usize = 16;

pub(super) struct Service {
    pub(super) accepted: mpsc::UnboundedSender<Connection>,
    pub(super) refusals: Arc<Mutex<VecDeque<Status>>>,
    /// Messages that may wait for a client.
    pub(super) queue: usize,
}

type Outgoing<T> = BoxStream<'static, Result<T, Status>>;

fn not_played<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not part of the script"))
}

#[tonic::async_trait]
impl proto::geyser_server::Geyser for Service {
    type SubscribeStream = Outgoing<proto::SubscribeUpdate>;

    async fn subscribe(
        &self,
        request: Request<Streaming<proto::SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let refusal = self
            .refusals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let mut incoming = request.into_inner();
        let (received, requests) = mpsc::unbounded_channel();
        let (messages, outgoing) = mpsc::channel(self.queue);
        tokio::spawn(async move {
            while let Some(Ok(request)) = incoming.next().await {
                if received.send(decode::received(request)).is_err() {
                    return;
                }
            }
        });
        self.accepted
            .send(Connection { requests, messages })
            .map_err(|_| Status::unavailable("the script is over"))?;
        Ok(Response::new(ReceiverStream::new(outgoing).boxed()))
    }

    type SubscribeDeshredStream = Outgoing<proto::SubscribeUpdateDeshred>;

    async fn subscribe_deshred(
        &self,
        _: Request<Streaming<proto::SubscribeDeshredRequest>>,
    ) -> Result<Response<Self::SubscribeDeshredStream>, Status> {
        not_played()
    }

    type SubscribeGossipStream = Outgoing<proto::SubscribeUpdateGossip>;

    async fn subscribe_gossip(
        &self,
        _: Request<proto::SubscribeGossipRequest>,
    ) -> Result<Response<Self::SubscribeGossipStream>, Status> {
        not_played()
    }

    async fn subscribe_replay_info(
        &self,
        _: Request<proto::SubscribeReplayInfoRequest>,
    ) -> Result<Response<proto::SubscribeReplayInfoResponse>, Status> {
        not_played()
    }

    async fn ping(
        &self,
        _: Request<proto::PingRequest>,
    ) -> Result<Response<proto::PongResponse>, Status> {
        not_played()
    }

    async fn get_latest_blockhash(
        &self,
        _: Request<proto::GetLatestBlockhashRequest>,
    ) -> Result<Response<proto::GetLatestBlockhashResponse>, Status> {
        not_played()
    }

    async fn get_block_height(
        &self,
        _: Request<proto::GetBlockHeightRequest>,
    ) -> Result<Response<proto::GetBlockHeightResponse>, Status> {
        not_played()
    }

    async fn get_slot(
        &self,
        _: Request<proto::GetSlotRequest>,
    ) -> Result<Response<proto::GetSlotResponse>, Status> {
        not_played()
    }

    async fn is_blockhash_valid(
        &self,
        _: Request<proto::IsBlockhashValidRequest>,
    ) -> Result<Response<proto::IsBlockhashValidResponse>, Status> {
        not_played()
    }

    async fn get_version(
        &self,
        _: Request<proto::GetVersionRequest>,
    ) -> Result<Response<proto::GetVersionResponse>, Status> {
        not_played()
    }
}

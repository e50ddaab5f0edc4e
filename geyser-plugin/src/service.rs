//! Implementation of the gRPC service `geyser.Geyser`.

use std::{pin::Pin, sync::Arc};

use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming, service::Interceptor};
use yellowstone_grpc_proto::geyser::{
    CommitmentLevel, GetBlockHeightRequest, GetBlockHeightResponse, GetLatestBlockhashRequest,
    GetLatestBlockhashResponse, GetSlotRequest, GetSlotResponse, GetVersionRequest,
    GetVersionResponse, IsBlockhashValidRequest, IsBlockhashValidResponse, PingRequest,
    PongResponse, SubscribeDeshredRequest, SubscribeGossipRequest, SubscribeReplayInfoRequest,
    SubscribeReplayInfoResponse, SubscribeRequest, SubscribeUpdateDeshred, SubscribeUpdateGossip,
    geyser_server::Geyser,
};

use crate::{
    blocks::{BLOCKHASH_VALID_BLOCKS, NotEnoughBlocks},
    client::{self, ClientStream},
    config::Config,
    hub::Hub,
    message::Commitment,
    shutdown::Stopping,
};

/// The gRPC service over a [`Hub`].
#[derive(Debug)]
pub struct Service {
    hub: Arc<Hub>,
    config: Arc<Config>,
    stopping: Stopping,
}

impl Service {
    /// A service whose subscriptions end when `stopping` begins.
    pub fn new(hub: Arc<Hub>, config: Arc<Config>, stopping: Stopping) -> Self {
        Self {
            hub,
            config,
            stopping,
        }
    }
}

impl From<NotEnoughBlocks> for Status {
    fn from(error: NotEnoughBlocks) -> Self {
        Self::unavailable(error.to_string())
    }
}

fn commitment(level: Option<i32>) -> Result<Commitment, Status> {
    let Some(level) = level else {
        return Ok(Commitment::default());
    };
    CommitmentLevel::try_from(level)
        .map(Commitment::from)
        .map_err(|_| Status::invalid_argument(format!("unknown commitment level {level}")))
}

#[tonic::async_trait]
impl Geyser for Service {
    type SubscribeStream = ClientStream;
    type SubscribeDeshredStream =
        Pin<Box<dyn Stream<Item = Result<SubscribeUpdateDeshred, Status>> + Send>>;
    type SubscribeGossipStream =
        Pin<Box<dyn Stream<Item = Result<SubscribeUpdateGossip, Status>> + Send>>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<ClientStream>, Status> {
        Ok(Response::new(client::spawn(
            Arc::clone(&self.hub),
            Arc::clone(&self.config),
            request.into_inner(),
            self.stopping.clone(),
        )))
    }

    async fn subscribe_deshred(
        &self,
        _request: Request<Streaming<SubscribeDeshredRequest>>,
    ) -> Result<Response<Self::SubscribeDeshredStream>, Status> {
        Err(Status::unimplemented("SubscribeDeshred is not served"))
    }

    async fn subscribe_gossip(
        &self,
        _request: Request<SubscribeGossipRequest>,
    ) -> Result<Response<Self::SubscribeGossipStream>, Status> {
        Err(Status::unimplemented("SubscribeGossip is not served"))
    }

    async fn subscribe_replay_info(
        &self,
        _request: Request<SubscribeReplayInfoRequest>,
    ) -> Result<Response<SubscribeReplayInfoResponse>, Status> {
        let first_available = self.hub.ring().first_available();
        Ok(Response::new(SubscribeReplayInfoResponse {
            first_available,
        }))
    }

    async fn ping(&self, request: Request<PingRequest>) -> Result<Response<PongResponse>, Status> {
        let count = request.into_inner().count;
        Ok(Response::new(PongResponse { count }))
    }

    async fn get_latest_blockhash(
        &self,
        request: Request<GetLatestBlockhashRequest>,
    ) -> Result<Response<GetLatestBlockhashResponse>, Status> {
        let commitment = commitment(request.into_inner().commitment)?;
        let ring = self.hub.ring();
        let block = ring.blocks().newest(commitment)?;
        Ok(Response::new(GetLatestBlockhashResponse {
            slot: block.slot,
            blockhash: block.blockhash.clone(),
            last_valid_block_height: block.height + BLOCKHASH_VALID_BLOCKS,
        }))
    }

    async fn get_block_height(
        &self,
        request: Request<GetBlockHeightRequest>,
    ) -> Result<Response<GetBlockHeightResponse>, Status> {
        let commitment = commitment(request.into_inner().commitment)?;
        let block_height = self.hub.ring().blocks().newest(commitment)?.height;
        Ok(Response::new(GetBlockHeightResponse { block_height }))
    }

    async fn get_slot(
        &self,
        request: Request<GetSlotRequest>,
    ) -> Result<Response<GetSlotResponse>, Status> {
        let commitment = commitment(request.into_inner().commitment)?;
        let slot = self.hub.ring().blocks().slot(commitment)?;
        Ok(Response::new(GetSlotResponse { slot }))
    }

    async fn is_blockhash_valid(
        &self,
        request: Request<IsBlockhashValidRequest>,
    ) -> Result<Response<IsBlockhashValidResponse>, Status> {
        let request = request.into_inner();
        let commitment = commitment(request.commitment)?;
        let mut bytes = [0; 32];
        if bs58::decode(&request.blockhash).onto(&mut bytes) != Ok(bytes.len()) {
            return Err(Status::invalid_argument("invalid blockhash"));
        }
        let ring = self.hub.ring();
        let (slot, valid) = ring.blocks().is_valid(&request.blockhash, commitment)?;
        Ok(Response::new(IsBlockhashValidResponse { slot, valid }))
    }

    async fn get_version(
        &self,
        _request: Request<GetVersionRequest>,
    ) -> Result<Response<GetVersionResponse>, Status> {
        let version = serde_json::json!({
            "version": {
                "package": env!("CARGO_PKG_NAME"),
                "version": env!("CARGO_PKG_VERSION"),
                "proto": "14.0.1",
                "solana": "4.2.2",
                "rustc": env!("PLUGIN_RUSTC_VERSION"),
            }
        });
        Ok(Response::new(GetVersionResponse {
            version: version.to_string(),
        }))
    }
}

/// Lets calls through that carry the configured `x-token` header.
#[derive(Debug, Clone)]
pub struct TokenCheck {
    /// The token, or `None` to let every call through.
    pub token: Option<Arc<str>>,
}

impl Interceptor for TokenCheck {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(token) = &self.token else {
            return Ok(request);
        };
        match request.metadata().get("x-token") {
            Some(sent) if same(sent.as_bytes(), token.as_bytes()) => Ok(request),
            _ => Err(Status::unauthenticated("No valid auth token")),
        }
    }
}

/// Compares in a time that does not depend on where the two differ.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |difference, (left, right)| difference | (left ^ right))
            == 0
}

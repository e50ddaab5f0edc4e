//! Server information: the version of a Yellowstone server, the first slot that it replays, and how far away it is.

use std::time::{Duration, Instant};

use tonic::Code;
use yellowstone_grpc_client::{GeyserGrpcClientError, GeyserGrpcClientResult};

use crate::{
    classify::classify,
    error::StreamError,
    limits,
    reader::{causes, connect},
    request::Endpoint,
};

/// What a server answers beside its streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its version, in words of its own; `None` where it does not serve the call.
    pub version: Option<String>,
    /// First slot that it replays; `None` where it replays none, or does not serve the call.
    pub first_available: Option<u64>,
    /// From a call on an open connection to its answer, whichever that was.
    pub round_trip: Duration,
}

impl ServerInfo {
    /// Asks a server, on a connection of its own.
    ///
    /// # Errors
    /// [`StreamError::Connect`], [`StreamError::Refused`], or what the server answered.
    pub async fn read(endpoint: &Endpoint) -> Result<Self, StreamError> {
        let asking = async {
            let mut client = connect(endpoint).await?;
            let begun = Instant::now();
            let version = client.get_version().await;
            let round_trip = begun.elapsed();
            let version = served(version)?;
            let replay = served(client.subscribe_replay_info().await)?;
            Ok(Self {
                version: version.map(|answer| answer.version),
                first_available: replay.and_then(|answer| answer.first_available),
                round_trip,
            })
        };
        let in_time = tokio::time::timeout(limits::SUBSCRIBE_TIMEOUT, asking).await;
        in_time.map_err(|_| {
            let patience = limits::SUBSCRIBE_TIMEOUT;
            StreamError::Connect(format!("no answer in {patience:?}"))
        })?
    }
}

/// The answer to a call; `None` where the server does not serve it.
fn served<T>(answer: GeyserGrpcClientResult<T>) -> Result<Option<T>, StreamError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(GeyserGrpcClientError::TonicStatus(status)) if status.code() == Code::Unimplemented => {
            Ok(None)
        }
        Err(GeyserGrpcClientError::TonicStatus(status)) => Err(classify(&status, false)),
        Err(GeyserGrpcClientError::TransportError(error)) => {
            Err(StreamError::Connect(causes(&error)))
        }
    }
}

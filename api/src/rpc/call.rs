//! Node: the cluster's RPC node, asked under a deadline; its failures are errors of the API.

use std::time::Duration;

use solana_commitment_config::CommitmentConfig;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::{
    client_error::{Error as ClientError, ErrorKind},
    custom_error::JSON_RPC_SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED,
    request::RpcError,
};

use crate::{
    error::ApiError,
    metrics::{CallOutcome, Metrics},
};

/// The node that is asked.
pub(super) struct Node {
    client: RpcClient,
    pub(super) deadline: Duration,
    metrics: Metrics,
}

impl Node {
    /// The node at `url`; each call ends after `deadline`.
    pub(super) fn new(url: &str, deadline: Duration, metrics: Metrics) -> Self {
        let commitment = CommitmentConfig::confirmed();
        let client =
            RpcClient::new_with_timeout_and_commitment(url.to_owned(), deadline, commitment);
        Self {
            client,
            deadline,
            metrics,
        }
    }

    /// Calls `method`, and ends the call at the deadline.
    pub(super) async fn call<T>(
        &self,
        method: &'static str,
        call: impl AsyncFnOnce(&RpcClient) -> Result<T, ClientError>,
    ) -> Result<T, ApiError> {
        let ended = tokio::time::timeout(self.deadline, call(&self.client)).await;
        let answer = ended
            .map_err(|_| ApiError::RpcTimeout)
            .and_then(|answer| answer.map_err(|error| failure(&error)));
        self.metrics.called(
            method,
            match answer {
                Ok(_) => CallOutcome::Answered,
                Err(ApiError::RpcTimeout) => CallOutcome::Timeout,
                Err(_) => CallOutcome::Failed,
            },
        );
        answer
    }
}

/// A failure of the RPC, described without the endpoint, whose URL may hold a key.
pub(super) fn malformed(what: &'static str) -> ApiError {
    ApiError::RpcFailed(anyhow::anyhow!(what))
}

/// Whether the node has not reached the slot that a call demands.
pub(super) fn is_behind(error: &ClientError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::RpcError(RpcError::RpcResponseError {
            code: JSON_RPC_SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED,
            ..
        })
    )
}

/// Makes an attempt again until the node has reached the slot that it demands, up to the deadline. An attempt gives `None`
/// where the node has not.
pub(super) async fn until_reached<T, F>(
    deadline: Duration,
    attempt: impl Fn() -> F,
) -> Result<T, ApiError>
where
    F: Future<Output = Result<Option<T>, ApiError>>,
{
    /// How long a node that is behind is given to come to the next slot: an eighth of one.
    const PAUSE: Duration = Duration::from_millis(50);

    let reached = async {
        loop {
            if let Some(found) = attempt().await? {
                return Ok(found);
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(deadline, reached)
        .await
        .map_err(|_| ApiError::RpcTimeout)?
}

fn failure(error: &ClientError) -> ApiError {
    match error.kind() {
        // The client counts a little later than the deadline here, but may be first.
        ErrorKind::Reqwest(error) if error.is_timeout() => ApiError::RpcTimeout,
        // The texts of other kinds may quote the endpoint with its key.
        ErrorKind::RpcError(RpcError::RpcResponseError { code, message, .. }) => {
            ApiError::RpcFailed(anyhow::anyhow!("refused: {message} ({code})"))
        }
        ErrorKind::RpcError(_) | ErrorKind::SerdeJson(_) => malformed("an answer of another shape"),
        ErrorKind::Reqwest(error) if error.is_connect() => malformed("no connection"),
        ErrorKind::Reqwest(error) if error.is_status() => malformed("an HTTP error status"),
        _ => malformed("the connection failed"),
    }
}

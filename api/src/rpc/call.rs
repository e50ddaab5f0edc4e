//! Deadline of a call to the cluster's RPC, and its failures as errors of the API.

use std::time::Duration;

use solana_rpc_client_api::{
    client_error::{Error as ClientError, ErrorKind},
    request::RpcError,
};

use crate::error::ApiError;

/// A failure of the RPC, described without the endpoint, whose URL may hold a key.
pub(super) fn malformed(what: &'static str) -> ApiError {
    ApiError::RpcFailed(anyhow::anyhow!(what))
}

/// Ends `call` at the deadline.
pub(super) async fn within<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ApiError> {
    tokio::time::timeout(deadline, call)
        .await
        .map_err(|_| ApiError::RpcTimeout)?
        .map_err(|error| match error.kind() {
            // The client counts a little later than the deadline here, but may be first.
            ErrorKind::Reqwest(error) if error.is_timeout() => ApiError::RpcTimeout,
            // The texts of other kinds may quote the endpoint with its key.
            ErrorKind::RpcError(RpcError::RpcResponseError { code, message, .. }) => {
                ApiError::RpcFailed(anyhow::anyhow!("refused: {message} ({code})"))
            }
            ErrorKind::RpcError(_) | ErrorKind::SerdeJson(_) => {
                malformed("an answer of another shape")
            }
            ErrorKind::Reqwest(error) if error.is_connect() => malformed("no connection"),
            ErrorKind::Reqwest(error) if error.is_status() => malformed("an HTTP error status"),
            _ => malformed("the connection failed"),
        })
}

//! Send nodes: all nodes to which signed transactions are sent, each one by itself.

use std::{ops::Range, time::Duration};

use serde_json::json;
use solana_rpc_client_api::request::RpcRequest;
use url::Url;

use super::call::Node;
use crate::{error::ApiError, metrics::Metrics};

/// The nodes.
pub struct SendNodes(Vec<Node>);

impl SendNodes {
    /// The nodes at these URLs; each call ends after `deadline`.
    pub fn new<'a>(
        urls: impl IntoIterator<Item = &'a Url>,
        deadline: Duration,
        metrics: &Metrics,
    ) -> Self {
        let urls = urls.into_iter();
        Self(
            urls.map(|url| Node::new(url.as_str(), deadline, metrics.clone()))
                .collect(),
        )
    }

    /// The numbers of the nodes.
    pub fn numbers(&self) -> Range<u32> {
        0..u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Sends a transaction, base64, to the node of this number. It is not simulated before, and the node sends it on once:
    /// when it is to be sent again is decided here.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn send(&self, number: u32, transaction: &str) -> Result<(), ApiError> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(node) = self.0.get(index) else {
            return Ok(());
        };
        let options = json!({"encoding": "base64", "skipPreflight": true, "maxRetries": 0});
        let call = node.call("sendTransaction", async |client| {
            let params = json!([transaction, options]);
            client
                .send::<String>(RpcRequest::SendTransaction, params)
                .await
        });
        call.await.map(drop)
    }
}

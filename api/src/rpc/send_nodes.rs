//! Send nodes: all nodes to which signed transactions are sent, each one by itself.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use solana_rpc_client_api::request::RpcRequest;
use url::Url;

use super::call::Node;
use crate::{error::ApiError, metrics::Metrics};

/// The nodes.
pub struct SendNodes(Vec<Arc<SendNode>>);

/// One of them.
pub struct SendNode {
    number: u32,
    node: Node,
}

impl SendNodes {
    /// The nodes at these URLs; each call ends after `deadline`.
    pub fn new<'a>(
        urls: impl IntoIterator<Item = &'a Url>,
        deadline: Duration,
        metrics: &Metrics,
    ) -> Self {
        let node = |(number, url): (u32, &Url)| {
            let node = Node::new(url.as_str(), deadline, metrics.clone());
            Arc::new(SendNode { number, node })
        };
        Self((0..).zip(urls).map(node).collect())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<SendNode>> {
        self.0.iter()
    }
}

impl SendNode {
    /// Its number among the nodes, from 0 on.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Sends it a transaction, base64. It is not simulated before, and the node sends it on once: when it is to be sent again
    /// is decided here.
    ///
    /// # Errors
    /// [`ApiError::RpcTimeout`] or [`ApiError::RpcFailed`].
    pub async fn send(&self, transaction: &str) -> Result<(), ApiError> {
        let options = json!({"encoding": "base64", "skipPreflight": true, "maxRetries": 0});
        let call = self.node.call("sendTransaction", async |client| {
            let params = json!([transaction, options]);
            client
                .send::<String>(RpcRequest::SendTransaction, params)
                .await
        });
        call.await.map(drop)
    }
}

//! Settings of the market: the streams and the node that it gets the chain from.

use sluice_geyser::Endpoint;
use url::Url;

/// Where the market gets the chain from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Streams in the order of preference; the next one is tried when one fails.
    pub endpoints: Vec<Endpoint>,
    /// JSON-RPC endpoint that accounts are read from. It may carry a key, so it is never logged.
    pub rpc_url: Url,
    /// Whether to subscribe to the accounts of the whole chain that are closed; some servers refuse that.
    pub watch_closed_accounts: bool,
}

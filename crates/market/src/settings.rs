//! Settings of the market: the streams and the node that it gets the chain from.

use std::time::Duration;

use cpmm::ExchangeIds;
use sluice_geyser::Endpoint;
use url::Url;

use crate::freshness::Freshness;

/// Where the market gets the chain from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the exchange is.
    pub exchange: ExchangeIds,
    /// Servers of the stream. Each slot is taken from the one that completes it first.
    pub endpoints: Vec<Endpoint>,
    /// JSON-RPC endpoint that accounts are read from. It may carry a key, so it is never logged.
    pub rpc_url: Url,
    /// Limits of reading from it.
    pub read_limits: ReadLimits,
    /// Whether to subscribe to the accounts of the whole chain that are closed; some servers refuse that.
    pub watch_closed_accounts: bool,
    /// How far behind the present the market may be and still be ready.
    pub freshness: Freshness,
}

/// Limits of the RPC calls that read accounts. An answer of hundreds of megabytes takes longer than a small one, so that
/// what counts first is that it goes on coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Longest time in which nothing comes of an answer, its beginning included: providers compute long lists for
    /// most of a minute before the first byte.
    pub idle_timeout: Duration,
    /// Longest time for a whole answer, however it comes.
    pub answer_timeout: Duration,
    /// Most calls in flight, at least one; fewer while the provider refuses them for their rate.
    pub parallel_calls: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(600),
            parallel_calls: 32,
        }
    }
}

impl ReadLimits {
    /// Time without an answer to any call after which a read is given up: one answer that came to nothing after its
    /// whole time, and its repetition.
    pub(crate) fn patience(&self) -> Duration {
        self.answer_timeout.saturating_mul(2)
    }
}

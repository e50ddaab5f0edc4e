//! Errors that end a stream or keep it from opening.

use std::time::Duration;

/// The end of a stream, or the reason it never began.
///
/// Every variant but [`StreamError::Refused`] and [`StreamError::TooManyKeys`] may pass by opening the stream again later;
/// [`StreamError::ReplayUnavailable`] only without `from_slot` or with a later one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// No connection: address, network, TLS or a timeout.
    #[error("cannot connect to the stream: {0}")]
    Connect(String),
    /// The server understood and said no: credentials, limits on filters, or a malformed request.
    /// Waiting does not help; the configuration or the request must change.
    #[error("the stream refused the request: {0}")]
    Refused(String),
    /// The request has more keys than the server takes on as many streams as are opened.
    #[error(
        "the filters have {keys} keys, more than fit into {} requests of what the server takes",
        crate::limits::MAX_STRANDS
    )]
    TooManyKeys {
        /// Keys of all filters.
        keys: usize,
    },
    /// The slots asked for by `from_slot` cannot be replayed: there is a gap that only a snapshot
    /// can close.
    #[error("the stream cannot replay from the slot asked for: {message}")]
    ReplayUnavailable {
        /// First slot that can be replayed, when the server named it.
        first_available: Option<u64>,
        /// The server's text.
        message: String,
    },
    /// A slot that began before the filter was in force was asked for again, and did not come. Those before it did, and
    /// another stream begins with another slot.
    #[error("slot {slot} was asked for again, and no server replays it")]
    NotReplayed {
        /// The slot.
        slot: u64,
    },
    /// The server dropped the stream because this side read too slowly.
    #[error("the stream was cut because it was read too slowly: {0}")]
    Lagged(String),
    /// The server ended the stream without an error, or the stream was used after its end.
    #[error("the stream was closed")]
    Closed,
    /// Nothing arrived for this long, not even a ping.
    #[error("the stream was silent for {0:?}, pings included")]
    Stalled(Duration),
    /// Pings arrived for this long, and nothing of the chain.
    #[error("the stream brought nothing of the chain for {0:?}, only pings")]
    Silent(Duration),
    /// A message was larger than [`crate::limits::MAX_MESSAGE_BYTES`].
    #[error("a message of the stream was too large: {0}")]
    TooLarge(String),
    /// A message had a content that the protocol forbids.
    #[error("the stream broke its protocol: {0}")]
    Protocol(String),
    /// Any other status of the server or of the connection.
    #[error("the stream failed: {0}")]
    Other(String),
}

impl StreamError {
    /// Whether a snapshot is needed because slots that were asked for are not replayed.
    #[must_use]
    pub fn is_replay_unavailable(&self) -> bool {
        matches!(
            self,
            Self::ReplayUnavailable { .. } | Self::NotReplayed { .. }
        )
    }

    /// Whether opening the same stream again can succeed without a change of configuration.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::TooManyKeys { .. })
    }
}

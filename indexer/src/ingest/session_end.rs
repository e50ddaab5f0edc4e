//! Session end: the reasons for which a stream connection is over.

use sluice_geyser::StreamError;
use sluice_store::StoreError;
use thiserror::Error;

use super::backfill_error::BackfillError;
use crate::{rpc::NodeError, slots::ForkTreeError, status::Stands};

/// Why a session ended.
#[derive(Debug, Error)]
pub(crate) enum SessionEnd {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Tree(#[from] ForkTreeError),
    #[error(transparent)]
    Backfill(#[from] BackfillError),
    #[error(
        "another block of slot {slot} came, which began before the webhooks' filter was in force"
    )]
    Cut {
        /// The slot.
        slot: u64,
    },
    #[error("{0}")]
    StoodStill(Stands),
    #[error("the active webhooks are not read any more")]
    Unwatched,
}

impl From<NodeError> for SessionEnd {
    fn from(error: NodeError) -> Self {
        BackfillError::from(error).into()
    }
}

impl SessionEnd {
    /// The kind of fault, for the log.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Stream(StreamError::Refused(_) | StreamError::TooManyKeys { .. }) => {
                "the stream refuses the subscription"
            }
            Self::Stream(StreamError::ReplayUnavailable { .. }) => {
                "slots can no longer be replayed"
            }
            Self::Stream(StreamError::NotReplayed { .. }) => "a slot is not replayed",
            Self::Stream(_) => "the stream is lost",
            Self::Store(error @ StoreError::Full(_)) => error.outage(),
            Self::Store(_) => "the database does not store what was read",
            Self::Tree(ForkTreeError::Full { .. }) => "slots are not confirmed",
            Self::Tree(ForkTreeError::Gap(_)) => "the stream left out blocks",
            Self::Backfill(_) => "missed slots are not read by RPC",
            Self::Cut { .. } => "a slot began before the webhooks' filter",
            Self::StoodStill(_) => "slots come and are not stored",
            Self::Unwatched => "the webhooks are not watched",
        }
    }
}

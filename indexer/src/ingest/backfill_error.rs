//! Errors of a backfill: why slots could not be read by RPC.

use std::time::Duration;

use thiserror::Error;

use crate::{rpc::NodeError, slots::Gap};

/// How long the node may take to reach a slot that the stream has shown. Slots are confirmed within seconds.
pub(super) const REACH_PATIENCE: Duration = Duration::from_secs(30);

/// Why slots could not be read by RPC.
#[derive(Debug, Error)]
pub(crate) enum BackfillError {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error("the node does not have slots {} to {}", .0.first, .0.last)]
    Gap(Gap),
    #[error("the node did not reach slot {slot} for {} s", REACH_PATIENCE.as_secs())]
    Behind { slot: u64 },
}

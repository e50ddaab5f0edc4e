//! How far the chain was read, and under which filter.

use crate::models::Revision;

/// The filter that the stream has proved to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterState {
    /// Webhook revision the filter was made from.
    pub revision: Revision,
    /// First slot whose whole content passed that filter.
    pub since_slot: u64,
}

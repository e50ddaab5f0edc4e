//! From the stream to the store: the chain is followed through every outage, one session after the other.
//!
//! [`follower`] opens sessions and decides where each begins, [`session`] turns updates into commits,
//! [`subscription`] is the filter that the stream is asked for, [`outbox`] stores messages with their checkpoint.

pub mod follower;
pub(crate) mod outbox;
mod session;
pub mod subscription;

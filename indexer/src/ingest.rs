//! Ingest: follows the chain through every outage, and stores its messages with their checkpoint.
//!
//! [`follower`] opens one session after the other; `resume` decides where each begins; `session` turns the updates of a
//! connection into commits; [`subscription`] is the filter that the stream is asked for; `outbox` stores messages with
//! their checkpoint and submits them to the dispatcher.

pub mod follower;
pub(crate) mod outbox;
mod reconnect;
mod resume;
pub(crate) mod session;
mod session_end;
pub mod subscription;

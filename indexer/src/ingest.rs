//! Ingest: follows the chain through every outage, and stores its messages with their checkpoint.
//!
//! [`follower`] opens one session after the other; `resume` decides where each begins; `session` turns the updates of a
//! connection into commits; `filter_round` changes its filter without a new connection, with the help of a `side_stream`;
//! both streams are taken `slot_by_slot`, so that none of this waits until a backlog is stored; `program_reader` finds the
//! accounts that watched programs own; `pauses` tells webhooks what they did not watch, and [`requested_backfill`] reads what their owners ask for; [`subscription`] is the filter that the stream is asked for; `outbox` stores messages with
//! their checkpoint, in [`pieces`], and submits them to the dispatcher; `settling` has them written to their tables after that.

pub(crate) mod backfill;
mod backfill_error;
mod filter_probe;
mod filter_round;
pub mod follower;
pub mod limit_probe;
pub(crate) mod outbox;
mod pauses;
pub mod pieces;
mod program_reader;
mod reconnect;
mod refusals;
pub(crate) mod requested_backfill;
mod resume;
pub(crate) mod session;
mod session_end;
pub(crate) mod settling;
mod side_stream;
mod slot_by_slot;
pub mod subscription;

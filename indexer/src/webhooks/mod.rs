//! From what happened on the chain to what a receiver has accepted.
//!
//! In order of travel: [`match_event`] finds whom an event concerns, [`compose`] writes the messages,
//! the store keeps them, [`intake`] brings them to [`deliver`], which also claims what is due and hands all to the
//! webhook client, [`retry`] says when to try a message again, and [`breaker`] when to try a receiver again.

pub mod body;
pub mod breaker;
pub mod compose;
pub mod deliver;
pub mod gates;
pub mod heartbeat;
pub mod idl;
pub mod intake;
pub mod match_event;
pub mod message_id;
pub mod program_events;
mod record;
pub mod retry;
pub mod watch;

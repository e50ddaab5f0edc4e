//! From what happened on the chain to what a receiver has accepted.
//!
//! In order of travel: [`match_event`] finds whom an event concerns, [`compose`] writes the messages,
//! the store keeps them, [`deliver`] claims, [`sign`]s and [`send`]s them, and [`retry`] says when to
//! try again.

pub mod address;
pub mod body;
pub mod compose;
pub mod deliver;
pub mod match_event;
pub mod message_id;
pub mod program_events;
pub mod retry;
pub mod send;
pub mod sign;
pub mod watch;

/// The commitment at which events are observed, as messages name it: a supermajority has voted for the
/// slot, which has never been undone on mainnet.
pub const COMMITMENT: &str = "confirmed";

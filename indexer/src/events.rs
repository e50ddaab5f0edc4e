//! From the events of a slot to the messages that subscribers are sent (pure).
//!
//! [`subscription_index`] finds the webhooks that an event matches, [`compose`] writes their messages, with the
//! [`payload`] of each and the [`message_id`] that follows from the event.

pub mod compose;
pub mod idl;
pub mod message_id;
pub mod payload;
pub mod program_events;
pub mod subscription_index;

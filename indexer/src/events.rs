//! Events: matches what happened in a slot with webhooks, and composes their messages (pure).
//!
//! [`subscription_index`] finds the webhooks whose addresses an event touches, [`conditions`] which of them want it, [`compose`] writes their messages, with the
//! [`payload`] of each and the [`message_id`] that follows from the event.

pub mod compose;
pub mod conditions;
pub mod exchange_mints;
pub mod idl;
pub mod lost;
pub mod message_id;
pub mod operations;
pub mod payload;
pub mod program_events;
pub mod subscriber;
pub mod subscription_index;

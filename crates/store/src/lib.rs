//! What Sluice remembers: webhooks, the messages they are owed, and how far the chain was read.
//!
//! The API writes webhooks; the indexer writes messages, attempts and the checkpoint. Both may open
//! the same database from two processes. The promises everything else rests on:
//!
//! - **A slot is all or nothing.** [`Store::commit_slot`] inserts a slot's messages, numbers them and
//!   moves the checkpoint in one transaction that is on disk when it returns.
//! - **Replay is harmless.** A message id is known once; inserting it again does nothing and takes no
//!   sequence number.
//! - **Sequences have no holes.** Each webhook's messages are numbered 1, 2, 3, … in commit order.
//! - **A crash repeats, never loses.** A claimed message returns by itself when its lease runs out.
//! - **A vanished file is noticed.** SQLite keeps writing happily into a deleted file and loses it all
//!   at exit; every access checks that the path still names the file that was opened.
//!
//! The models at the root know no SQL; [`sqlite`] is the only module that does, and the only place in
//! Sluice that names `sqlx`. Time and randomness are parameters.

mod checkpoint;
mod deliveries;
mod error;
mod events;
mod models;
mod sqlite;
mod webhooks;

pub use checkpoint::FilterState;
pub use deliveries::{Attempt, ClaimLimits, ClaimedDelivery, Delivery, DeliveryState, Outcome};
pub use error::StoreError;
pub use events::{BodyTemplate, Committed, NewDelivery};
pub use models::{InvalidId, MessageId, Revision, Secret, Timestamp, WebhookId};
pub use sqlite::Store;
pub use webhooks::{
    EventKind, EventKinds, Filters, LiveWebhook, LiveWebhooks, NewWebhook, Webhook,
    WebhookDefinition, WebhookPage,
};

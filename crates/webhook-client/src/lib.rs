//! Webhook client: posts one signed HTTP request to an endpoint whose addresses were judged first.
//!
//! Deliveries and the samples by which an owner tests a webhook go through the same [`Client`], so that
//! neither reaches what the other could not.
//!
//! - [`address`]: judges addresses.
//! - `own_addresses`: this machine's addresses, which no endpoint may have.
//! - [`target`]: judges URLs (pure).
//! - [`request`]: makes the headers and the bytes of an attempt (pure).
//! - [`batch_body`], [`batch_id`]: put several messages into one POST (pure).
//! - [`payload()`]: leaves the data of a message out (pure).
//! - `signature`: signs a message (pure).
//! - [`resolve`]: resolves names to addresses, kept for a while, all of them judged.
//! - `connector`: connects to judged addresses, with TLS where they are public.
//! - `connection`, `pool`: HTTP on a connection, and those that are kept.
//! - [`client`]: makes one attempt under one deadline.

pub mod address;
mod batch;
pub mod client;
mod connection;
mod connector;
mod error;
mod own_addresses;
mod payload;
mod pool;
pub mod request;
pub mod resolve;
pub mod retry_after;
mod signature;
pub mod target;
mod timeline;

pub use batch::{batch_body, batch_id};
pub use client::{Client, SHORTEST_DEADLINE};
pub use error::{SendError, SetupError};
pub use payload::payload;
pub use request::{SignedRequest, WebhookRequest, is_reserved_header};
pub use signature::{SecretFault, public_key};
pub use target::{Reach, TargetFault};

//! How a message reaches a receiver: one signed HTTP request to an address that was judged first.
//!
//! Real deliveries and those by which an owner tries a webhook out go through the same [`Client`], so that
//! neither reaches what the other could not.
//!
//! - [`address`]: which addresses may be connected to.
//! - [`target`]: which URLs may be called (pure).
//! - [`request`]: the headers and the bytes of an attempt (pure).
//! - `signature`: how a message is signed (pure).
//! - [`resolve`]: names become addresses, all of them judged.
//! - [`client`]: one attempt under one deadline, and what is kept of it.

pub mod address;
pub mod client;
pub mod request;
pub mod resolve;
pub mod retry_after;
mod signature;
pub mod target;
mod timeline;

pub use client::{Attempted, Client, SendError, SetupError};
pub use request::{Delivery, is_reserved_header};
pub use signature::SecretFault;
pub use target::{Reach, TargetFault};

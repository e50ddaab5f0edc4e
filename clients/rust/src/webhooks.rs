//! Webhooks: the messages of deliveries, and what verifies that they come from the service.

#[cfg(feature = "axum")]
pub use crate::axum::{MOST_BYTES_SENT, Secrets, Verified};
pub use crate::message::{
    AccountChange, Content, EndpointDisabled, EndpointFailing, ExecutedTransaction, FilterRefused,
    Gap, Heartbeat, Message, ProgramEvent, QuotaUsedUp, Resumed, Reverted, WatchedFilter,
};
pub use crate::verify::{Delivery, VerificationError, verify};

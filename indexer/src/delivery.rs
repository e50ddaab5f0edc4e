//! From what the store keeps to what an endpoint has accepted.
//!
//! [`capacity`] brings messages to the [`dispatcher`], which also leases what is due and hands all to the webhook
//! client under a permit of the [`limiter`]; [`retry`] says when to try a message again, [`breaker`] when to try an
//! endpoint again.

pub mod breaker;
pub mod capacity;
pub mod dispatcher;
pub mod limiter;
mod recorder;
pub mod retry;

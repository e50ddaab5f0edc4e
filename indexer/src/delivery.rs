//! Delivery: attempts messages under leases, limits and retries them, and records the results.
//!
//! A delivery is `pending`, then `leased` (under the [`capacity`] of this process, as its message is inserted or when
//! it is due), then `attempted` (by the [`dispatcher`], under a permit of the [`limiter`]), then recorded (by the
//! recorder): delivered, failed, or pending again. [`retry`] decides about the message, [`breaker`] about the
//! endpoint. The four [`limits`] stand together.

mod backlog;
mod batches;
pub mod breaker;
pub mod capacity;
pub mod dispatcher;
pub mod limiter;
pub mod limits;
mod recorder;
mod recoveries;
pub mod retry;
mod wakes;

//! [`retried`]: tries a transaction again that the database undid for the sake of another one.
//!
//! The locks of our transactions are taken in one order: sequences, the revision, webhooks, deliveries, endpoints, usage.
//! Rows of one table that a statement finds by itself come in no certain order, so two may still meet.

use std::time::Duration;

/// Tries, the first included.
pub(super) const TRIES: u32 = 5;

/// Pause before another try: longer than most transactions.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// The outcome of an operation, which is carried out again while its transaction conflicts with another.
macro_rules! retried {
    ($operation:expr) => {{
        let mut tries = $crate::sql::retried::TRIES;
        loop {
            tries = tries.saturating_sub(1);
            match $operation.await {
                Err($crate::StoreError::Conflict(_)) if tries > 0 => {
                    tokio::time::sleep($crate::sql::retried::PAUSE).await;
                }
                outcome => break outcome,
            }
        }
    }};
}
pub(super) use retried;

//! [`retried`]: tries a transaction again that the database undid for the sake of another one.
//!
//! The locks of our transactions are taken in one order: API keys, sequences, the revision, webhooks, deliveries, endpoints, usage.
//! Rows of one table that a statement finds by itself come in no certain order, so two may still meet. Whoever leases takes API keys
//! when it comes to them, and waits for none.
//!
//! Whoever edits a webhook has its row of sequences before it reads it, and whoever gives one to an API key has the key's row. Who
//! revokes the key has all of these: what was written before is seen by it, and whoever comes later sees that the key is revoked.

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

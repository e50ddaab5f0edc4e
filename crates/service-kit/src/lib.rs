//! The small things every Sluice process needs: a shutdown token, logging, secrets that cannot be
//! printed, and a reconnect delay. Knows nothing of Solana, of the stream or of the database.

pub mod backoff;
pub mod redacted;
pub mod shutdown;
pub mod telemetry;

pub use backoff::Backoff;
pub use redacted::Redacted;
pub use tokio_util::sync::CancellationToken;

//! Parts of every Sluice process: shutdown, logging, traces, progress, metrics' text, clock, back-off, open files, allocator.
//!
//! Knows nothing of Solana, of the stream or of the database.

use mimalloc::MiMalloc;

pub mod backoff;
pub mod clock;
pub mod open_files;
pub mod open_metrics;
pub mod outage_log;
pub mod progress;
pub mod reference_clock;
pub mod shutdown;
pub mod telemetry;
pub mod traces;

pub use backoff::Backoff;
pub use clock::Clock;
pub use outage_log::OutageLog;
pub use progress::Progress;
pub use reference_clock::{Reference, ReferenceClock};
pub use tokio_util::sync::CancellationToken;

/// The allocator of every process of Sluice. Updates, answers and messages are made by one thread and dropped by
/// another, many thousands a second, which the system's own allocator pays for with locks and with memory that it
/// keeps.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

//! Log output to standard error, filtered by `RUST_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::progress::AboveBars;

/// What is logged when `RUST_LOG` says nothing.
const DEFAULT_FILTER: &str = "info";

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people: coloured on a terminal.
    Text,
    /// For what collects logs: a JSON object with `timestamp`, `level`, `target`, and `fields`, of which one is `message`.
    Json,
}

/// Installs the process-wide logger: lines to standard error, filtered by `RUST_LOG` (default `info`). A second call is ignored,
/// so tests may call it.
pub fn init(format: Format) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let logger = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(AboveBars::default)
        .with_ansi(std::io::stderr().is_terminal());
    // The only failure is a logger that is installed already, which serves as well.
    let _ = match format {
        Format::Text => logger.try_init(),
        Format::Json => logger.json().try_init(),
    };
}

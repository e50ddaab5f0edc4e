//! Log output to standard error, filtered by `RUST_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// What is logged when `RUST_LOG` says nothing.
const DEFAULT_FILTER: &str = "info";

/// Installs the process-wide logger: text lines to standard error, filtered by `RUST_LOG`
/// (default `info`), coloured only on a terminal. A second call is ignored, so tests may call it.
pub fn init() {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    // The only failure is a logger that is installed already, which serves as well.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}

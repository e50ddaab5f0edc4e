//! Shutdown on SIGINT or SIGTERM, as a token that every task can watch.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns a token that is cancelled by the first SIGINT or SIGTERM. A second signal ends the process
/// at once with status 130, for a drain that does not end.
///
/// # Errors
/// When the operating system refuses to install the signal handlers.
pub fn on_signal() -> std::io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let cancelled = token.clone();
    tokio::spawn(async move {
        for round in 0..2 {
            let name = tokio::select! {
                _ = interrupt.recv() => "SIGINT",
                _ = terminate.recv() => "SIGTERM",
            };
            if round == 0 {
                tracing::info!(
                    signal = name,
                    "shutting down; a second signal stops at once"
                );
                cancelled.cancel();
            }
        }
        std::process::exit(130);
    });
    Ok(token)
}

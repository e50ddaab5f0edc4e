//! Shutdown signal that ends every task of the server.

use tokio::sync::watch;

/// The end that gives the signal.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Sender<bool>);

/// An end that waits for the signal.
#[derive(Debug, Clone)]
pub struct Stopping(watch::Receiver<bool>);

/// Creates both ends.
pub fn channel() -> (Shutdown, Stopping) {
    let (sender, receiver) = watch::channel(false);
    (Shutdown(sender), Stopping(receiver))
}

impl Shutdown {
    /// Gives the signal. It stays given.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }
}

impl Stopping {
    /// Waits until the signal is given, or until nothing is left to give it.
    pub async fn begun(&mut self) {
        let _ = self.0.wait_for(|begun| *begun).await;
    }
}

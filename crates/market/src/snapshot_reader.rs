//! Reads account snapshots by RPC: what the stream does not report, because it reports changes only.
//!
//! The calls are made here, on a plain HTTP client, and not through the cluster's RPC client, because
//! of their size: a response of hundreds of thousands of accounts is decoded straight from its bytes,
//! where a tree of JSON values would take several times its size in memory.
//!
//! A read is some thousands of calls, and providers refuse, lose and delay some of them: each has its own repetitions
//! (`jobs`), all share one pace (`pace`), and an answer that is too large is asked for in parts (`part`). A read fails only
//! where no repetition helps, or when nothing at all has come for long.

mod caller;
mod error;
#[cfg(test)]
mod first_fill;
mod jobs;
mod pace;
mod part;
mod progress;
mod reading;
mod wire;

use std::thread;

use cpmm::ExchangeIds;
use solana_pubkey::Pubkey;
use tokio::{
    runtime,
    sync::{mpsc, oneshot, watch},
};
use url::Url;

use crate::{account_snapshot::AccountSnapshot, settings::ReadLimits};

use self::{caller::Caller, reading::Reading};

pub(crate) use self::{error::SnapshotError, progress::Progress};

/// Reads snapshots; clones share the connections.
///
/// Everything is read at commitment confirmed. A processed response could be of a fork that is
/// abandoned later without the stream ever having followed it, and of a slot that is not complete; a
/// confirmed one is neither.
#[derive(Clone)]
pub(crate) struct SnapshotReader(Caller);

impl SnapshotReader {
    pub(crate) fn new(exchange: ExchangeIds, url: Url, limits: ReadLimits) -> Self {
        Self(Caller::new(exchange, url, limits))
    }

    /// All pools, all their dependencies and the clock, as of `min_slot` or later; each snapshot goes to
    /// `snapshots` as it comes, and how far the read is to `progress`.
    ///
    /// It is read on a thread of its own, which ends with it: decoding hundreds of megabytes must not hold up
    /// requests, and the memory that only this took is given back with the thread. Dropping the future ends both.
    pub(crate) async fn everything(
        &self,
        min_slot: u64,
        snapshots: mpsc::Sender<AccountSnapshot>,
        progress: watch::Sender<Progress>,
    ) -> Result<(), SnapshotError> {
        let caller = self.0.apart();
        let (mut done, result) = oneshot::channel();
        let gone = |reason: String| SnapshotError::Unreachable {
            method: "getProgramAccounts",
            reason,
        };
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| gone(error.to_string()))?;
        let reading = move || {
            runtime.block_on(async {
                let reading = Reading::new(&caller, min_slot, &snapshots);
                let read = tokio::select! {
                    read = reading.everything(&progress) => read,
                    () = done.closed() => return,
                };
                // The caller may be gone by now.
                let _ = done.send(read);
            });
        };
        let thread = thread::Builder::new().name("snapshot".to_owned());
        let thread = thread.spawn(reading);
        thread.map_err(|error| gone(error.to_string()))?;
        let result = result.await;
        result.map_err(|_| gone("the thread that read it broke off".to_owned()))?
    }

    /// These accounts, as of `min_slot` or later; each snapshot goes to `snapshots` as it comes.
    pub(crate) async fn accounts(
        &self,
        keys: &[Pubkey],
        min_slot: u64,
        snapshots: &mpsc::Sender<AccountSnapshot>,
    ) -> Result<(), SnapshotError> {
        let reading = Reading::new(&self.0, min_slot, snapshots);
        reading.accounts(keys).await
    }
}

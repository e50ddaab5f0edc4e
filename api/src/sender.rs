//! Sender: sends signed swaps to all nodes, again until confirmed or past their height, and follows them.

mod readers;
mod shortage;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use parking_lot::Mutex;
use service_kit::CancellationToken;
use sluice_market::Sighting;
use solana_signature::Signature;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use self::readers::Readers;
pub use self::shortage::Shortage;
use crate::{
    error::ApiError,
    followed::{BLOCKHASH_LIFE, Followed, FollowedTransactions, Full, Outcome, Signed},
    metrics::Metrics,
    rpc::{Rpc, SendNode, SendNodes},
};

/// Pause between two rounds of sending: about five slots, so that every few leaders get it.
const SEND_EVERY: Duration = Duration::from_secs(2);

/// Calls of a round that are under way at once, all nodes together: a round of many transactions shares the nodes with the
/// requests.
const SENT_AT_ONCE: usize = 32;

/// Sends and follows.
pub struct Sender {
    rpc: Arc<Rpc>,
    nodes: SendNodes,
    shortage: Shortage,
    metrics: Metrics,
    followed: Mutex<FollowedTransactions>,
    readers: Readers,
}

impl Sender {
    /// Follows none yet.
    #[must_use]
    pub fn new(rpc: Arc<Rpc>, nodes: SendNodes, shortage: Shortage, metrics: Metrics) -> Self {
        Self {
            rpc,
            nodes,
            shortage,
            metrics,
            followed: Mutex::default(),
            readers: Readers::default(),
        }
    }

    /// Follows a transaction, and sends it unless it was followed already. Returns once a node has accepted it, or all have
    /// failed to, which changes nothing: it may have reached one all the same, and is sent again.
    ///
    /// # Errors
    /// When there is no room, or the height of the chain is not known.
    pub async fn send(self: &Arc<Self>, signed: Signed) -> Result<Followed, ApiError> {
        let signature = signed.signature;
        if let Some(known) = self.get(&signature) {
            return Ok(known);
        }
        let height = self.height().await?;
        let transaction = Arc::clone(&signed.transaction);
        // Before it is sent: the stream may show it before a node has answered.
        let followed = self.followed.lock().follow(signed, height, Instant::now());
        followed.map_err(|Full| ApiError::TooManyTransactions)?;
        let (accepted, mut first) = mpsc::channel(1);
        for node in self.nodes.iter() {
            let (sender, transaction) = (Arc::clone(self), Arc::clone(&transaction));
            let (node, accepted) = (Arc::clone(node), accepted.clone());
            tokio::spawn(async move {
                if sender.send_to(&node, &signature, &transaction).await {
                    let _ = accepted.try_send(());
                }
            });
        }
        drop(accepted);
        first.recv().await;
        self.get(&signature).ok_or(ApiError::TooManyTransactions)
    }

    /// Sends a transaction to one node; whether it accepted it.
    async fn send_to(&self, node: &SendNode, signature: &Signature, transaction: &str) -> bool {
        let number = node.number();
        match node.send(transaction).await {
            Ok(()) => {
                self.followed.lock().accepted(signature, number);
                self.show_changes();
                true
            }
            Err(error) => {
                tracing::debug!(
                    node = number,
                    code = error.code(),
                    "a transaction was not accepted"
                );
                false
            }
        }
    }

    /// What is known of a transaction.
    #[must_use]
    pub fn get(&self, signature: &Signature) -> Option<Followed> {
        self.followed.lock().get(signature).cloned()
    }

    /// What is known of a transaction, and whatever becomes known: the newest alone.
    #[must_use]
    pub fn read(&self, signature: &Signature) -> Option<watch::Receiver<Followed>> {
        self.readers.read(signature, || self.get(signature))
    }

    /// Shows readers what has changed.
    fn show_changes(&self) {
        let changed = {
            let mut followed = self.followed.lock();
            self.metrics.followed(followed.len());
            followed.take_changed()
        };
        self.readers.show(&changed, |signature| self.get(signature));
    }

    fn see(&self, sighting: Sighting) {
        if let Sighting::Executed {
            signature,
            error: Some(_),
            logs,
            ..
        } = &sighting
        {
            self.learn_shortage(signature, logs);
        }
        let now = Instant::now();
        let mut followed = self.followed.lock();
        match sighting {
            Sighting::Begun { is_resumed } => followed.begin(is_resumed),
            Sighting::Lost => followed.lose(),
            Sighting::Executed {
                signature,
                slot,
                error,
                logs,
            } => {
                let outcome = Outcome::of(error.as_deref(), &logs, &self.rpc.exchange().program);
                followed.executed(&signature, slot, outcome, now);
            }
            Sighting::Opened(slot) => followed.opened(slot),
            Sighting::Block {
                slot,
                parent,
                height,
            } => followed.block(slot, parent, height),
            Sighting::Dead(slot) => followed.undone(slot),
            Sighting::Confirmed(slot) => followed.confirmed(slot, now),
            Sighting::Finalized(slot) => followed.finalized(slot, now),
        }
        drop(followed);
        self.show_changes();
    }

    /// Learns from a transaction that failed, where it was sent here. Another fork may execute it once more: the first is enough.
    fn learn_shortage(&self, signature: &Signature, logs: &[String]) {
        let transaction = {
            let followed = self.followed.lock();
            let known = followed.get(signature);
            let known = known.filter(|known| !known.is_executed());
            known.map(|known| Arc::clone(&known.transaction))
        };
        if let Some(transaction) = transaction {
            self.shortage.learn(&transaction, logs);
        }
    }

    /// The height of the chain, by the blockhash that is held ready.
    async fn height(&self) -> Result<u64, ApiError> {
        let latest = self.rpc.latest_blockhash().await?;
        Ok(latest
            .last_valid_block_height
            .saturating_sub(BLOCKHASH_LIFE))
    }

    /// Ends what cannot land any more, and sends the rest again.
    async fn send_again(self: Arc<Self>) {
        // Without a node that answers, nothing is known of the height, and nothing can be sent.
        let Ok(height) = self.height().await else {
            return;
        };
        let unconfirmed = {
            let mut followed = self.followed.lock();
            followed.pass(height, Instant::now());
            followed.unconfirmed(height)
        };
        self.show_changes();
        self.readers.forget_gone();
        let calls: Vec<_> = unconfirmed
            .into_iter()
            .flat_map(|one| {
                let nodes = self.nodes.iter();
                nodes.map(move |node| (Arc::clone(node), one.clone()))
            })
            .collect();
        let calls = futures::stream::iter(calls);
        calls
            .for_each_concurrent(SENT_AT_ONCE, |(node, (signature, transaction))| {
                let sender = Arc::clone(&self);
                async move {
                    sender.send_to(&node, &signature, &transaction).await;
                }
            })
            .await;
    }
}

/// Follows what `sender` has sent until `shutdown`.
pub async fn run(
    sender: Arc<Sender>,
    mut sightings: mpsc::Receiver<Sighting>,
    shutdown: CancellationToken,
) {
    let mut ticks = interval(SEND_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Beside this task, so that a slow node holds back no sighting; one round at a time.
    let mut round: Option<JoinHandle<()>> = None;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            sighting = sightings.recv() => match sighting {
                Some(sighting) => sender.see(sighting),
                None => break,
            },
            _ = ticks.tick() => {
                if round.as_ref().is_none_or(JoinHandle::is_finished) {
                    round = Some(tokio::spawn(Arc::clone(&sender).send_again()));
                }
            }
        }
    }
    if let Some(round) = round {
        round.abort();
    }
}

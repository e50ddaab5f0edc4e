//! Composing: writes the messages of a slot piece by piece, on a task of its own, while those before are committed.

use std::{panic, sync::Arc};

use sluice_store::Commitment;
use tokio::{
    sync::mpsc,
    task::{JoinHandle, yield_now},
};

use super::{
    super::pieces::{Piece, Pieces},
    Session,
};
use crate::{
    events::{compose, subscription_index::Subscriptions},
    slots::{Block, LastOwners, SlotEvents},
};

/// The messages of a slot that are still to come.
pub(super) struct Composing {
    composed: mpsc::Receiver<Piece>,
    task: Option<JoinHandle<()>>,
}

/// The events of a slot, to be emitted at a commitment.
#[derive(Clone)]
pub(super) struct Emission {
    pub(super) commitment: Commitment,
    pub(super) block: Arc<Block>,
    pub(super) events: Arc<SlotEvents>,
    /// Owners that their accounts had before.
    pub(super) last_owners: Arc<LastOwners>,
}

impl Session<'_> {
    /// Begins to compose the messages of an emission.
    pub(super) fn compose(
        &self,
        subscriptions: &Arc<Subscriptions>,
        emission: &Emission,
    ) -> Composing {
        let emission = emission.clone();
        let subscriptions = Arc::clone(subscriptions);
        let idls = Arc::clone(&self.context.idls.borrow());
        let now = self.now();
        let (sender, composed) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            let events = (&*emission.events, &*emission.last_owners);
            let (commitment, block) = (emission.commitment, &*emission.block);
            let messages = compose::events(&subscriptions, &idls, commitment, block, events, now);
            for piece in Pieces::of(messages) {
                // Not received when the session is over.
                if sender.send(piece).await.is_err() {
                    return;
                }
                // Who waits for it would be run by this thread only after the next one is composed.
                yield_now().await;
            }
        });
        Composing {
            composed,
            task: Some(task),
        }
    }
}

impl Composing {
    /// Of a slot whose messages are composed.
    pub(super) fn of(pieces: Vec<Piece>) -> Self {
        let (sender, composed) = mpsc::channel(pieces.len().max(1));
        for piece in pieces {
            // There is room for each.
            let _ = sender.try_send(piece);
        }
        Self {
            composed,
            task: None,
        }
    }

    /// The next piece; `None` after the last.
    ///
    /// # Panics
    /// When the task did.
    pub(super) async fn next(&mut self) -> Option<Piece> {
        let piece = self.composed.recv().await;
        if piece.is_none()
            && let Some(task) = self.task.take()
            && let Err(error) = task.await
            && error.is_panic()
        {
            panic::resume_unwind(error.into_panic());
        }
        piece
    }
}

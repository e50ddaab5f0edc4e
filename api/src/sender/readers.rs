//! Readers: who is shown what becomes of a sent transaction (pure).

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use solana_signature::Signature;
use tokio::sync::watch;

use crate::followed::Followed;

/// Who reads, by transaction.
#[derive(Default)]
pub(super) struct Readers {
    by_signature: Mutex<HashMap<Signature, watch::Sender<Followed>>>,
    /// Whether there may be any: the stream shows far more than is read, and none of that waits for the lock.
    are_any: AtomicBool,
}

impl Readers {
    /// What is known of a transaction, which `current` tells, and whatever becomes known: the newest alone.
    pub(super) fn read(
        &self,
        signature: &Signature,
        current: impl FnOnce() -> Option<Followed>,
    ) -> Option<watch::Receiver<Followed>> {
        let mut readers = self.by_signature.lock();
        // Before `current`: a change that comes after it finds the reader, and one that comes before is in it.
        self.are_any.store(true, Ordering::SeqCst);
        let followed = current()?;
        let shown = readers
            .entry(*signature)
            .or_insert_with(|| watch::Sender::new(followed));
        Some(shown.subscribe())
    }

    /// Shows what became of those that have changed, which `current` tells.
    pub(super) fn show(
        &self,
        changed: &[Signature],
        current: impl Fn(&Signature) -> Option<Followed>,
    ) {
        if changed.is_empty() || !self.are_any.load(Ordering::SeqCst) {
            return;
        }
        let readers = self.by_signature.lock();
        for signature in changed {
            // Under the lock, so that of two changes the later one is shown last.
            if let Some(shown) = readers.get(signature)
                && let Some(now) = current(signature)
            {
                shown.send_replace(now);
            }
        }
    }

    /// Forgets those that are gone.
    pub(super) fn forget_gone(&self) {
        let mut readers = self.by_signature.lock();
        readers.retain(|_, shown| shown.receiver_count() > 0);
        self.are_any.store(!readers.is_empty(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Arc, time::Instant};

    use super::*;
    use crate::followed::{FollowedTransactions, Signed};

    fn followed() -> FollowedTransactions {
        let mut all = FollowedTransactions::default();
        let signed = Signed {
            signature: Signature::default(),
            transaction: Arc::from(""),
            last_valid_block_height: Some(200),
            has_nonce: false,
        };
        all.follow(signed, 100, Instant::now()).expect("room");
        all
    }

    #[test]
    fn who_reads_is_shown_each_change_and_nothing_is_looked_up_for_nobody() {
        let (readers, mut all) = (Readers::default(), followed());
        let signature = Signature::default();
        let looked_up = Cell::new(0);
        let show = |all: &mut FollowedTransactions, node| {
            all.accepted(&signature, node);
            let changed = all.take_changed();
            assert_eq!(changed, [signature]);
            readers.show(&changed, |signature| {
                looked_up.set(looked_up.get() + 1);
                all.get(signature).cloned()
            });
        };
        show(&mut all, 0);
        assert_eq!(looked_up.get(), 0);
        let mut reader = readers
            .read(&signature, || all.get(&signature).cloned())
            .expect("it is followed");
        assert_eq!(reader.borrow_and_update().accepted_by(), 1);
        show(&mut all, 1);
        assert!(reader.has_changed().expect("it is shown"));
        assert_eq!(reader.borrow_and_update().accepted_by(), 2);
        drop(reader);
        readers.forget_gone();
        show(&mut all, 2);
        assert_eq!(looked_up.get(), 1);
    }

    #[test]
    fn what_is_not_followed_cannot_be_read_and_leaves_nothing_behind() {
        let readers = Readers::default();
        assert!(readers.read(&Signature::default(), || None).is_none());
        readers.forget_gone();
        assert!(!readers.are_any.load(Ordering::SeqCst));
    }
}

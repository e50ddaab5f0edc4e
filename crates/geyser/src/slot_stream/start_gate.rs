//! Start gate: keeps a server that is behind from deciding with which slot a stream begins (pure).
//!
//! The first slot is the one that the first server shows. Were that server a minute behind, nothing newer could be given out
//! for a minute.

use std::time::Duration;

use tokio::time::Instant;

use crate::update::Update;

/// Time in which every server must have shown where it is: one that sends slots sends several statuses in it, however long a
/// slot lasts. One that has shown nothing by then is not waited for.
const GRACE: Duration = Duration::from_millis(400);

/// Slots by which a server may be behind the one that is farthest and still begin: what lies between a block and its
/// finality.
const MAX_BEHIND_SLOTS: u64 = 32;

/// What each server has shown.
#[derive(Debug)]
pub(super) struct StartGate {
    /// The newest slot by server; `None` for one that has shown nothing.
    newest: Vec<Option<u64>>,
    /// When the first update came.
    first_at: Option<Instant>,
}

impl StartGate {
    pub(super) fn new(servers: usize) -> Self {
        Self {
            newest: vec![None; servers],
            first_at: None,
        }
    }

    /// Notes an update. Returns whether the stream may begin with it. `is_awaited` says of which servers something may come.
    pub(super) fn admits(
        &mut self,
        server: usize,
        update: &Update,
        now: Instant,
        is_awaited: impl Fn(usize) -> bool,
    ) -> bool {
        let slot = update.slot();
        if let Some(newest) = self.newest.get_mut(server) {
            *newest = (*newest).max(Some(slot));
        }
        let first_at = *self.first_at.get_or_insert(now);
        let mut newest = self.newest.iter().enumerate();
        let all_shown = newest.all(|(server, newest)| newest.is_some() || !is_awaited(server));
        if !all_shown && now < first_at + GRACE {
            return false;
        }
        let farthest = self.newest.iter().flatten().max();
        farthest.is_none_or(|farthest| slot.saturating_add(MAX_BEHIND_SLOTS) >= *farthest)
    }
}

#[cfg(test)]
mod tests {
    use sluice_chain_types::SlotStatus;

    use super::*;
    use crate::update::{Body, SlotUpdate};

    fn created(slot: u64) -> Update {
        Update {
            filters: Vec::new(),
            created_at: None,
            bank_id: None,
            body: Body::Slot(SlotUpdate {
                slot,
                parent: None,
                status: SlotStatus::CreatedBank,
                dead_error: None,
            }),
        }
    }

    #[test]
    fn a_server_that_is_behind_does_not_begin() {
        let (mut gate, now) = (StartGate::new(2), Instant::now());
        assert!(!gate.admits(0, &created(100), now, |_| true));
        assert!(gate.admits(1, &created(250), now, |_| true));
        assert!(!gate.admits(0, &created(101), now, |_| true));
        assert!(gate.admits(0, &created(218), now, |_| true));
    }

    #[test]
    fn a_server_that_shows_nothing_is_not_waited_for_long() {
        let (mut gate, now) = (StartGate::new(2), Instant::now());
        assert!(!gate.admits(0, &created(100), now, |_| true));
        assert!(gate.admits(0, &created(101), now + GRACE, |_| true));
        let mut gate = StartGate::new(2);
        assert!(gate.admits(0, &created(100), now, |server| server == 0));
    }
}

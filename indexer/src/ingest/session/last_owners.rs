//! Last owners of a session: of the accounts of a slot, which were taken from a watched program.

use super::{Served, Session};
use crate::slots::{Block, LastOwners, SlotEvents};

impl Session<'_> {
    /// The owners that accounts written in a block had before.
    pub(super) fn last_owners(
        &self,
        served: Served<'_>,
        block: &Block,
        events: &SlotEvents,
    ) -> LastOwners {
        if served.subscriptions.watches_owners() {
            self.ownership.last_owners(block, events)
        } else {
            LastOwners::default()
        }
    }

    /// Takes note of the owners in a block that may still leave the chain. Only webhooks at processed ask for them.
    pub(super) fn saw_processed(
        &mut self,
        served: Served<'_>,
        block: &Block,
        events: &SlotEvents,
        last_owners: &LastOwners,
    ) {
        let subscriptions = served.subscriptions;
        if served.checkpoints && subscriptions.watches_owners() {
            let watched = |program: &_| subscriptions.watches_owner(program);
            self.ownership
                .processed(block, events, last_owners, watched);
        }
    }

    /// Takes note of the owners in a confirmed block.
    pub(super) fn saw_confirmed(&mut self, served: Served<'_>, block: &Block, events: &SlotEvents) {
        let subscriptions = served.subscriptions;
        if subscriptions.watches_owners() {
            let watched = |program: &_| subscriptions.watches_owner(program);
            self.ownership.confirmed(block, events, watched);
        }
    }
}

//! Backfill: reads by RPC the slots that no stream server replays, in order, and stores them like streamed ones.
//!
//! A node's ledger has the transactions of a block but not what its accounts became. So everything that follows from
//! transactions is made up for, by the same session and under the same ids as if it had been streamed, and the changes
//! of accounts are not: each webhook that wants them is sent a `gap` that names them alone, followed by the accounts
//! that it watches as they are now.
//!
//! A long outage is made up for without a stream, from the checkpoint through the newest confirmed slot; the session
//! that follows begins there. Where the server cannot replay even that little, the stream is opened first, and what is
//! missing before its first block is read while its updates wait.
//!
//! The checkpoint moves with each slot, so a crash costs nothing. That account changes are missing is stored before the
//! first slot is read, and forgotten only after it was reported.

pub(super) mod account_gaps;

use std::{sync::Arc, time::Duration};

use service_kit::{Progress, progress::time_left};
use sluice_geyser::{Body, SlotStatus, SlotUpdate, Update};
use sluice_store::{Commitment, FilterState};
use solana_pubkey::Pubkey;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    backfill_error::{BackfillError, REACH_PATIENCE},
    pauses,
    reconnect::Reconnect,
    resume::ResumePolicy,
    session::{Session, SessionContext},
    session_end::SessionEnd,
};
use crate::{
    events::subscription_index::Subscriptions,
    rpc::{
        Block, Node,
        node::{Answer, Blocks},
    },
    slots::Gap,
};

/// Within how many slots of the node's newest confirmed one a backfill is done: any server that replays at all has as
/// many.
const CAUGHT_UP_SLOTS: u64 = 8;

/// Pause before a node that has not reached a slot is asked again, wall time.
const REACH_PAUSE: Duration = Duration::from_millis(200);

/// What became of a range of slots.
enum Fed {
    /// All of them were stored.
    Whole,
    /// The node does not have these either, and all before them were stored.
    Gap(Gap),
}

/// Reads from a node what the stream lacks.
#[derive(Clone, Debug)]
pub(crate) struct Backfill {
    node: Node,
}

impl Backfill {
    /// A backfill from this node.
    pub(crate) const fn new(node: Node) -> Self {
        Self { node }
    }

    /// The node.
    pub(super) const fn node(&self) -> &Node {
        &self.node
    }

    /// Reads everything from the checkpoint through the newest confirmed slot, and at least through `last`. Slots that
    /// the node does not have either are reported as a gap.
    pub(super) async fn catch_up(
        &self,
        context: &SessionContext,
        subscriptions: &watch::Receiver<Arc<Subscriptions>>,
        reconnect: &mut Reconnect,
        last: Option<u64>,
    ) -> Result<(), SessionEnd> {
        let mut gap: Option<Gap> = None;
        loop {
            let state = context.outbox.store.resume_state().await?;
            let Some(confirmed) = state.confirmed else {
                // Nothing was read before, so nothing is missing.
                return Ok(());
            };
            let tip = self.reach(last.unwrap_or(0)).await?;
            let subscriptions = Arc::clone(&subscriptions.borrow());
            pauses::report(&context.outbox).await?;
            let ledger = self.node.first_available_block().await?;
            let mut resume = ResumePolicy::new().resume_point(state.clone(), &subscriptions);
            let needed = resume.from_slot.unwrap_or(0);
            if ledger > needed {
                let policy = ResumePolicy::from_first_available(ledger);
                resume = policy.resume_point(state, &subscriptions);
            } else if let Some(gap) = gap.take() {
                resume = ResumePolicy::after_gap(gap).resume_point(state, &subscriptions);
            }
            let first = needed.max(ledger);
            tracing::info!(
                first,
                last = tip,
                "reading by RPC what no stream server replays"
            );
            context.status.disconnected(format!(
                "slots {first} to {tip} are read by RPC, because no stream server replays them"
            ));
            account_gaps::note(&context.outbox, &resume, first).await?;
            let in_force = FilterState {
                revision: subscriptions.revision(),
                in_force_slot: first,
            };
            let mut session = Session::new(context.clone(), subscriptions, resume, reconnect);
            match self.feed(&mut session, first, tip).await? {
                Fed::Gap(found) => gap = Some(found),
                Fed::Whole => {
                    // Its webhooks have been served from there on, and need not be asked for again.
                    context.outbox.store.record_filter_state(in_force).await?;
                    if confirmed.saturating_add(CAUGHT_UP_SLOTS) >= tip {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads what a session lacks that has just begun, from its first slot through `last`, the first block that its
    /// stream has shown.
    pub(super) async fn complete(
        &self,
        context: &SessionContext,
        session: &mut Session<'_>,
        last: u64,
    ) -> Result<(), SessionEnd> {
        let Some(first) = session.resume().from_slot else {
            return Ok(());
        };
        account_gaps::note(&context.outbox, session.resume(), first).await?;
        self.reach(last).await?;
        match self.feed(session, first, last).await? {
            Fed::Whole => Ok(()),
            Fed::Gap(gap) => Err(BackfillError::Gap(gap).into()),
        }
    }

    /// Waits until the node has confirmed a slot; returns its newest.
    async fn reach(&self, slot: u64) -> Result<u64, BackfillError> {
        let began = Instant::now();
        loop {
            let newest = self.node.slot(Commitment::Confirmed).await?;
            if newest >= slot {
                return Ok(newest);
            }
            if began.elapsed() > REACH_PATIENCE {
                return Err(BackfillError::Behind { slot });
            }
            sleep(REACH_PAUSE).await;
        }
    }

    /// Has a session take the blocks of these slots, as if they were streamed.
    async fn feed(
        &self,
        session: &mut Session<'_>,
        first: u64,
        last: u64,
    ) -> Result<Fed, SessionEnd> {
        let finalized = self.node.slot(Commitment::Finalized).await?;
        let subscriptions = session.served();
        let wanted = Arc::new(move |mentioned: &[Pubkey], token_owners: &[Pubkey]| {
            subscriptions.reads(mentioned, token_owners)
        });
        // Everything up to here is known.
        let mut known = first.saturating_sub(1);
        let mut next = first;
        let (begun, mut shown) = (Instant::now(), Progress::default());
        while next <= last {
            let (slots, covered) = self.node.slots_with_blocks(next, last).await?;
            let mut blocks: Blocks<_> = self.node.blocks(slots, Arc::clone(&wanted));
            while let Some((slot, answer)) = blocks.next().await? {
                // What the node does not have shows in the parent of the next block.
                let Answer::Block(block) = answer else {
                    continue;
                };
                let parent = block.meta.parent_slot;
                let lost = Gap {
                    first: known.saturating_add(1),
                    last: parent,
                };
                if parent > known && session.resume().gap != Some(lost) {
                    return Ok(Fed::Gap(lost));
                }
                let status = if slot <= finalized {
                    SlotStatus::Finalized
                } else {
                    SlotStatus::Confirmed
                };
                for update in updates(block, status) {
                    session.update(update).await?;
                }
                known = slot;
                let read = slot.saturating_sub(first).saturating_add(1);
                let all = last.saturating_sub(first).saturating_add(1);
                shown.show(read, all, &words(read, all, begun.elapsed()));
            }
            next = covered.saturating_add(1);
        }
        Ok(Fed::Whole)
    }
}

/// How far a backfill is, for people.
fn words(read: u64, all: u64, elapsed: Duration) -> String {
    let left = time_left(read, all, elapsed).map_or(String::new(), |left| {
        format!(", about {} s left", left.as_secs().saturating_add(1))
    });
    format!("reading by RPC: {read} of {all} slots{left}")
}

/// A block as the stream sends it, up to this status.
fn updates(block: Block, status: SlotStatus) -> impl Iterator<Item = Update> {
    let (slot, parent) = (block.meta.slot, block.meta.parent_slot);
    let content = block.transactions.into_iter();
    let content = content.map(|transaction| Body::Transaction(Box::new(transaction)));
    let statuses = [SlotStatus::Processed, status].map(|status| {
        Body::Slot(SlotUpdate {
            slot,
            parent: Some(parent),
            status,
            dead_error: None,
        })
    });
    let bodies = content.chain([Body::BlockMeta(block.meta)]).chain(statuses);
    bodies.map(|body| Update {
        filters: Vec::new(),
        created_at: None,
        bank_id: None,
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backfill_says_how_far_it_is_and_how_long_it_takes() {
        let begun = words(0, 200, Duration::ZERO);
        assert_eq!(begun, "reading by RPC: 0 of 200 slots");
        let under_way = words(50, 200, Duration::from_secs(10));
        assert_eq!(
            under_way,
            "reading by RPC: 50 of 200 slots, about 31 s left"
        );
    }
}

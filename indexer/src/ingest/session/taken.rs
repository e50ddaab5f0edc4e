//! Taken accounts of a slot: what became of them is asked of the node, before the slot is emitted.
//!
//! The messages belong to the slot: they are stored with its others, before the checkpoint, and retracted with them. So the answer
//! is waited for, and not for long.

use std::{collections::BTreeMap, time::Duration};

use sluice_geyser::{AccountUpdate, TransactionUpdate};
use sluice_store::Commitment;
use solana_pubkey::Pubkey;
use tokio::time::{Instant, timeout};

use super::{Served, Session};
use crate::{
    rpc::Node,
    slots::{Block, SlotEvents, Taken, Taking},
};

/// How long a slot with taken accounts waits for the node: some calls, so that one that is busy is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a node that did not answer is not asked again, wall time: what it costs the live stream then is a twelfth of the time.
const REST: Duration = Duration::from_secs(60);

/// Most answers that are kept until their slots are finalized: some 32 slots of a busy program. Beyond, the node is asked again.
const MAX_KEPT: usize = 4_096;

/// Asks for accounts that were taken.
#[derive(Debug, Default)]
pub(super) struct TakenReader {
    /// The accounts of slots that are not finalized, as a node had them, at processed and after it: what is processed may be of a
    /// fork that the confirmed chain has left.
    kept: BTreeMap<(u64, Commitment, Pubkey), AccountUpdate>,
    resting_until: Option<Instant>,
}

impl TakenReader {
    /// The takings that stand by what the node says, with that. Of an account of which it says nothing, nothing is told: most that
    /// look like it were left as they were.
    async fn read(
        &mut self,
        node: Option<&Node>,
        (slot, commitment): (u64, Commitment),
        takings: Vec<Taking>,
    ) -> Vec<Taken> {
        let commitment = commitment.min(Commitment::Confirmed);
        let place = |account: &Pubkey| (slot, commitment, *account);
        let accounts = takings.iter().map(|taking| taking.account);
        let unread: Vec<_> = accounts
            .filter(|account| !self.kept.contains_key(&place(account)))
            .collect();
        let mut states = self.ask(node, &unread, (slot, commitment)).await;
        let stand = takings.into_iter().filter_map(|taking| {
            let place = place(&taking.account);
            let state = match states.remove(&taking.account) {
                Some(state) => {
                    if self.kept.len() < MAX_KEPT {
                        self.kept.insert(place, state.clone());
                    }
                    Some(state)
                }
                None => self.kept.get(&place).cloned(),
            };
            taking.with_state(state?)
        });
        stand.collect()
    }

    /// The accounts as the node has them, as far as it answers in time.
    async fn ask(
        &mut self,
        node: Option<&Node>,
        accounts: &[Pubkey],
        (slot, commitment): (u64, Commitment),
    ) -> BTreeMap<Pubkey, AccountUpdate> {
        let rests = self
            .resting_until
            .is_some_and(|until| Instant::now() < until);
        let Some(node) = node.filter(|_| !accounts.is_empty() && !rests) else {
            return BTreeMap::new();
        };
        let reason = match timeout(PATIENCE, node.accounts(accounts, commitment, slot)).await {
            Ok(Ok(states)) => {
                let states = states.into_iter().map(|state| (state.pubkey, state));
                return states.collect();
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
        };
        tracing::warn!(
            slot,
            reason,
            accounts = accounts.len(),
            "accounts may have been taken from a watched program, and the node does not say: nothing is told of them"
        );
        self.resting_until = Some(Instant::now() + REST);
        BTreeMap::new()
    }

    /// No slot at or before this one is emitted again.
    pub(super) fn finalized(&mut self, slot: u64) {
        self.kept.retain(|(of, ..), _| *of > slot);
    }
}

impl Session<'_> {
    /// Whether a webhook may be sent a transaction, one that is to be served after the round under way included. Others come
    /// because of what they may have taken.
    pub(super) fn is_read(&self, transaction: &TransactionUpdate) -> bool {
        let round = self.round.as_ref();
        self.subscriptions.reads_transaction(transaction)
            || round.is_some_and(|round| round.subscriptions().reads_transaction(transaction))
    }

    /// The accounts that were taken in a block without a write that shows it. Not of events that came late, nor of slots that were
    /// read by RPC: the rest of what happened is not there, or no write is.
    pub(super) async fn taken(
        &mut self,
        served: Served<'_>,
        (commitment, block): (Commitment, &Block),
        events: &SlotEvents,
    ) -> Vec<Taken> {
        let subscriptions = served.subscriptions;
        let is_streamed =
            !served.checkpoints || self.first_whole.is_some_and(|first| block.slot >= first);
        if !is_streamed || events.are_late() || !subscriptions.watches_owners() {
            return Vec::new();
        }
        let watched = |program: &_| subscriptions.watches_owner(program);
        let takings = self.ownership.takings(block, events, watched);
        if takings.is_empty() {
            return Vec::new();
        }
        let node = self.context.node.as_ref();
        self.taken_reader
            .read(node, (block.slot, commitment), takings)
            .await
    }
}

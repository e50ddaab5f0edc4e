//! One slot of one branch: its writes, and the state they make of its parent's.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use sluice_geyser::AccountUpdate;
use solana_pubkey::Pubkey;
use solana_signature::Signature;

use super::{
    content::Content,
    state::{Changed, Index, State},
};

/// The last write to an account in a slot.
pub(super) struct Write {
    /// Orders the writes within the slot.
    pub(super) version: u64,
    pub(super) content: Content,
}

/// Accounts by address.
pub(super) type Writes = HashMap<Pubkey, Write, RandomState>;

/// A slot.
#[derive(Default)]
pub(super) struct Bank {
    /// The slot it builds on, once told.
    pub(super) parent: Option<u64>,
    /// Whether its writes are complete.
    pub(super) frozen: bool,
    pub(super) writes: Writes,
    pub(super) stage: Stage,
}

/// How far a slot's state is.
#[derive(Default)]
pub(super) enum Stage {
    /// The parent's state is not known yet; writes wait.
    #[default]
    Waiting,
    /// The parent is sealed; writes are applied as they come, unseen.
    Open(Draft),
    /// Complete and visible.
    Sealed(State),
}

impl Bank {
    /// The state, when the slot is sealed.
    pub(super) const fn sealed(&self) -> Option<&State> {
        match &self.stage {
            Stage::Sealed(state) => Some(state),
            Stage::Waiting | Stage::Open(_) => None,
        }
    }

    /// The state so far, sealed or not.
    pub(super) const fn state_mut(&mut self) -> Option<&mut State> {
        match &mut self.stage {
            Stage::Sealed(state) => Some(state),
            Stage::Open(draft) => Some(&mut draft.state),
            Stage::Waiting => None,
        }
    }
}

/// A state under construction. Pools are put together when the transaction that wrote them is over:
/// a swap writes a pool and two vaults, and putting the pool together once is a third of the work.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) state: State,
    stale: Vec<Pubkey>,
    transaction: Option<Signature>,
}

impl Draft {
    /// A slot that has written nothing yet.
    pub(super) const fn on(parent: State) -> Self {
        Self {
            state: parent,
            stale: Vec::new(),
            transaction: None,
        }
    }

    /// Applies a write. `missing` collects parts of pools of which nothing is known.
    pub(super) fn write(
        &mut self,
        pubkey: Pubkey,
        content: Content,
        transaction: Option<Signature>,
        index: &mut Index,
        missing: &mut BTreeSet<Pubkey>,
    ) {
        if self.transaction != transaction {
            self.refresh(missing);
            self.transaction = transaction;
        }
        match self.state.put(pubkey, content, index) {
            Changed::Nothing => {}
            Changed::Pool => self.stale.push(pubkey),
            Changed::Part => self.stale.extend(index.pools_with(&pubkey)),
        }
    }

    fn refresh(&mut self, missing: &mut BTreeSet<Pubkey>) {
        self.stale.sort_unstable();
        self.stale.dedup();
        for pool in self.stale.drain(..) {
            self.state.refresh(pool, |part| {
                missing.insert(part);
            });
        }
    }

    /// The state with everything that was written.
    pub(super) fn finish(mut self, missing: &mut BTreeSet<Pubkey>) -> State {
        self.refresh(missing);
        self.state
    }
}

/// A write of the stream, decoded.
pub(super) fn decode(update: &AccountUpdate) -> Write {
    Write {
        version: update.write_version,
        content: Content::decode(&update.pubkey, &update.owner, update.lamports, &update.data),
    }
}

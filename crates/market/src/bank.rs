//! One slot of one branch, and the state it makes of its parent's.

use solana_pubkey::Pubkey;
use solana_signature::Signature;

use super::{
    accounts::Accounts,
    content::Content,
    state::{Index, State},
    wanted::Wanted,
};

/// A slot.
#[derive(Default)]
pub(super) struct Bank {
    /// The slot it builds on, once told.
    pub(super) parent: Option<u64>,
    /// Whether its writes are over.
    pub(super) frozen: bool,
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
pub(super) struct Draft {
    slot: u64,
    state: State,
    /// Pools to put together, each with an account that changed.
    stale: Vec<(Pubkey, Pubkey)>,
    transaction: Option<Signature>,
}

impl Draft {
    /// A slot that has written nothing yet.
    pub(super) const fn new(slot: u64, parent: State) -> Self {
        Self {
            slot,
            state: parent,
            stale: Vec::new(),
            transaction: None,
        }
    }

    /// Takes up the next write of `transaction`: the pools of the one before it are put together,
    /// from accounts that do not contain the write yet.
    pub(super) fn turn_to(
        &mut self,
        transaction: Option<Signature>,
        accounts: &Accounts,
        wanted: &mut Wanted,
    ) {
        if self.transaction != transaction {
            self.refresh(accounts, wanted);
            self.transaction = transaction;
        }
    }

    /// Notes what a write changes. `before` is what the account was.
    pub(super) fn write(
        &mut self,
        pubkey: Pubkey,
        before: Option<&Content>,
        now: &Content,
        index: &mut Index,
    ) {
        index.register(pubkey, before, now);
        if let Content::Clock(clock) = now {
            self.state.set_clock(*clock);
        } else if matches!(now, Content::Pool(_)) || matches!(before, Some(Content::Pool(_))) {
            self.stale.push((pubkey, pubkey));
        } else {
            let pools = index.pools_with(&pubkey);
            self.stale.extend(pools.map(|pool| (pool, pubkey)));
        }
    }

    fn refresh(&mut self, accounts: &Accounts, wanted: &mut Wanted) {
        self.stale.sort_unstable();
        let get = |pubkey: &Pubkey| accounts.get(self.slot, pubkey);
        for changes in self.stale.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((pool, _)) = changes.first() else {
                continue;
            };
            let changed = changes.iter().map(|(_, account)| *account);
            self.state.change(*pool, changed, get, wanted);
        }
        self.stale.clear();
    }

    /// The state with everything that was written.
    pub(super) fn finish(mut self, accounts: &Accounts, wanted: &mut Wanted) -> State {
        self.refresh(accounts, wanted);
        self.state
    }
}

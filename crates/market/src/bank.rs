//! Bank: one slot of one fork, and the state that its writes make of its parent's (pure).

use solana_pubkey::Pubkey;
use solana_signature::Signature;

use crate::{
    accounts::Accounts,
    decoded_account::DecodedAccount,
    missing_accounts::MissingAccounts,
    state::{Index, State},
};

/// A slot.
#[derive(Default)]
pub(crate) struct Bank {
    /// The slot it builds on, once reported.
    pub(crate) parent: Option<u64>,
    /// Whether its `processed` status was reported: its writes are over.
    pub(crate) complete: bool,
    /// Blocks between it and the first slot of the market, once it is sealed.
    pub(crate) height: u64,
    pub(crate) phase: Phase,
}

/// How far the state of a slot is.
#[derive(Default)]
pub(crate) enum Phase {
    /// The parent is not sealed yet; writes wait.
    #[default]
    AwaitingParent,
    /// The parent is sealed; writes are applied as they come, unseen.
    Building(BankBuilder),
    /// Complete; readers may see it.
    Sealed(State),
}

impl Phase {
    /// The phase that follows: building begins once the parent's slot and state are known, from the writes that
    /// waited, and sealing needs a slot that `is_whole`: complete, with every write delivered.
    pub(crate) fn advance(
        self,
        slot: u64,
        parent: Option<(u64, State)>,
        is_whole: bool,
        accounts: &Accounts,
        index: &mut Index,
        missing: &mut MissingAccounts,
    ) -> Self {
        let begun = match (self, parent) {
            (Self::AwaitingParent, Some((parent, state))) => {
                let mut builder = BankBuilder::new(slot, state);
                for (pubkey, write) in accounts.writes(slot) {
                    let before = accounts.get(parent, pubkey);
                    builder.write(*pubkey, before, &write.account, index);
                }
                Self::Building(builder)
            }
            (phase, _) => phase,
        };
        match begun {
            Self::Building(builder) if is_whole => Self::Sealed(builder.finish(accounts, missing)),
            phase => phase,
        }
    }
}

impl Bank {
    /// The state, when the slot is sealed.
    pub(crate) const fn sealed(&self) -> Option<&State> {
        match &self.phase {
            Phase::Sealed(state) => Some(state),
            Phase::AwaitingParent | Phase::Building(_) => None,
        }
    }

    /// The state so far, sealed or not.
    pub(crate) const fn state_mut(&mut self) -> Option<&mut State> {
        match &mut self.phase {
            Phase::Sealed(state) => Some(state),
            Phase::Building(builder) => Some(&mut builder.state),
            Phase::AwaitingParent => None,
        }
    }
}

/// A state under construction. A pool's snapshot is renewed when the transaction that wrote it is over:
/// a swap writes a pool and two vaults, and renewing the snapshot once is a third of the work.
pub(crate) struct BankBuilder {
    slot: u64,
    state: State,
    /// Pools whose snapshot is to be renewed, each with an account that changed.
    stale: Vec<(Pubkey, Pubkey)>,
    transaction: Option<Signature>,
}

impl BankBuilder {
    /// A slot that has written nothing yet.
    pub(crate) const fn new(slot: u64, parent: State) -> Self {
        Self {
            slot,
            state: parent,
            stale: Vec::new(),
            transaction: None,
        }
    }

    /// The next write is one of `transaction`: where that is another one than before, the pools of the one
    /// before are renewed, from accounts that do not contain the write yet.
    pub(crate) fn enter_transaction(
        &mut self,
        transaction: Option<Signature>,
        accounts: &Accounts,
        missing: &mut MissingAccounts,
    ) {
        if self.transaction != transaction {
            self.refresh(accounts, missing);
            self.transaction = transaction;
        }
    }

    /// Notes what a write changes. `before` is what the account was.
    pub(crate) fn write(
        &mut self,
        pubkey: Pubkey,
        before: Option<&DecodedAccount>,
        now: &DecodedAccount,
        index: &mut Index,
    ) {
        index.register(pubkey, before, now);
        if let DecodedAccount::Clock(clock) = now {
            self.state.set_clock(*clock);
        } else if matches!(now, DecodedAccount::Pool(_))
            || matches!(before, Some(DecodedAccount::Pool(_)))
        {
            self.stale.push((pubkey, pubkey));
        } else {
            let pools = index.pools_with(&pubkey);
            self.stale.extend(pools.map(|pool| (pool, pubkey)));
        }
    }

    fn refresh(&mut self, accounts: &Accounts, missing: &mut MissingAccounts) {
        self.stale.sort_unstable();
        let get = |pubkey: &Pubkey| accounts.get(self.slot, pubkey);
        for changes in self.stale.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((pool, _)) = changes.first() else {
                continue;
            };
            let changed = changes.iter().map(|(_, account)| *account);
            self.state.change(*pool, changed, get, missing);
        }
        self.stale.clear();
    }

    /// The state with everything that was written.
    pub(crate) fn finish(mut self, accounts: &Accounts, missing: &mut MissingAccounts) -> State {
        self.refresh(accounts, missing);
        self.state
    }
}

//! Bootstrap: the first snapshots, collected until the stream reaches them, and their join (pure).

use solana_pubkey::Pubkey;

use crate::{
    account_snapshot::AccountSnapshot,
    accounts::Accounts,
    decoded_account::{ByAddress, DecodedAccount},
    state::Index,
};

/// How far the first state of the market is.
pub(crate) enum Bootstrap {
    /// The first snapshots are being read.
    Collecting(Vec<AccountSnapshot>),
    /// All of them are here; the stream has not reached the newest yet.
    AwaitingStream(Vec<AccountSnapshot>),
    /// There is a first state.
    Done,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self::Collecting(Vec::new())
    }
}

impl Bootstrap {
    /// Takes in one of the first snapshots.
    pub(crate) fn collect(&mut self, snapshot: AccountSnapshot) {
        match self {
            Self::Collecting(snapshots) | Self::AwaitingStream(snapshots) => {
                snapshots.push(snapshot);
            }
            Self::Done => {}
        }
    }

    /// There are no more first snapshots.
    pub(crate) fn complete(&mut self) {
        if let Self::Collecting(snapshots) = self {
            *self = Self::AwaitingStream(std::mem::take(snapshots));
        }
    }

    /// The lowest and the highest context slot of the first snapshots, once all of them are here.
    pub(crate) fn context_slots(&self) -> Option<(u64, u64)> {
        let Self::AwaitingStream(snapshots) = self else {
            return None;
        };
        let slots = || snapshots.iter().map(|snapshot| snapshot.context_slot);
        slots().min().zip(slots().max())
    }

    /// Ends the bootstrap and hands out the first snapshots.
    pub(crate) fn finish(&mut self) -> Vec<AccountSnapshot> {
        match std::mem::replace(self, Self::Done) {
            Self::Collecting(snapshots) | Self::AwaitingStream(snapshots) => snapshots,
            Self::Done => Vec::new(),
        }
    }
}

/// Fills the confirmed accounts with the first snapshots and with what was `written` since, the last write
/// of each account and its slot. Pools come first: what belongs to none is not kept. Accounts are moved from
/// where they were decoded to where they stay, because there is a lot of them.
pub(crate) fn join_first_snapshots(
    snapshots: Vec<AccountSnapshot>,
    mut written: ByAddress<(u64, DecodedAccount)>,
    accounts: &mut Accounts,
    index: &mut Index,
) {
    let read = || snapshots.iter().flat_map(|snapshot| &snapshot.accounts);
    accounts.reserve(read().map(|(_, account)| account));
    let is_pool = |account: &&DecodedAccount| matches!(account, DecodedAccount::Pool(_));
    index.reserve(read().map(|(_, account)| account).filter(is_pool).count());
    let streamed = written
        .iter()
        .map(|(pubkey, (_, account))| (pubkey, account));
    for (pubkey, account) in read()
        .map(|(pubkey, account)| (pubkey, account))
        .chain(streamed)
    {
        index.register(*pubkey, None, account);
    }
    let mut keep = |pubkey: Pubkey, account: DecodedAccount| {
        if index.is_kept(&pubkey, &account) {
            accounts.add(pubkey, account);
        }
    };
    for snapshot in snapshots {
        let context = snapshot.context_slot;
        for (pubkey, account) in snapshot.accounts {
            let newer = written.remove(&pubkey).filter(|(slot, _)| *slot >= context);
            keep(pubkey, newer.map_or(account, |(_, account)| account));
        }
    }
    for (pubkey, (_, account)) in written {
        keep(pubkey, account);
    }
}

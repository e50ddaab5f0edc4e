//! Market without a network: follows accounts and recorded updates, for benchmarks and tests of its readers.
//!
//! It is the same state machine, published the same way.

use cpmm::ids;
use sluice_chain_types::RawAccount;
use sluice_geyser::{Body, Update};

use crate::{
    account_snapshot::AccountSnapshot, decoded_account::DecodedAccount, divergence::Divergence,
    market_tree::MarketTree, view::Market,
};

/// The recorded updates cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Stray(#[from] Divergence);

/// A market that follows what it is given.
#[derive(Default)]
pub struct Replay {
    tree: MarketTree,
    market: Market,
}

impl Replay {
    /// Begins with the accounts of the exchange as they are at the end of `slot`. They show once an
    /// update has completed the slot.
    #[must_use]
    pub fn begin(slot: u64, accounts: impl IntoIterator<Item = RawAccount>) -> Self {
        let mut replay = Self::default();
        let decoded = accounts.into_iter().map(|account| {
            let RawAccount {
                pubkey,
                owner,
                lamports,
                data,
            } = account;
            (
                pubkey,
                DecodedAccount::decode(&ids::PROGRAM_ID, &pubkey, &owner, lamports, &data),
            )
        });
        replay.tree.first_snapshot(AccountSnapshot {
            context_slot: slot,
            accounts: decoded.collect(),
        });
        replay.tree.first_snapshots_complete();
        replay
    }

    /// Takes in an update.
    ///
    /// # Errors
    /// [`Stray`] when it has no place in what was reported before.
    pub fn update(&mut self, update: &Update) -> Result<(), Stray> {
        match &update.body {
            Body::Account(account) => self.tree.account(account)?,
            Body::Slot(slot) => {
                if self.tree.slot(slot)?
                    && let Some(states) = self.tree.head_states()
                {
                    self.market.publish(states);
                }
            }
            Body::Transaction(_) | Body::BlockMeta(_) => {}
        }
        Ok(())
    }

    /// Takes in what came of a slot before that is known to be whole.
    ///
    /// # Errors
    /// [`Stray`] when it has no place in what was reported before.
    pub fn ahead(&mut self, body: &Body) -> Result<(), Stray> {
        Ok(self.tree.ahead(body)?)
    }

    /// Forgets what came ahead of a slot.
    pub fn void(&mut self, slot: u64) {
        self.tree.void(slot);
    }

    /// The market that readers see.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.market
    }
}

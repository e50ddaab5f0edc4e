//! The market without a network: fed with accounts and recorded updates, for benchmarks and for tests
//! of what reads it. It is the same state machine, published the same way.

use sluice_chain_types::RawAccount;
use sluice_geyser::{Body, Update};

use super::{
    content::Content,
    ledger::{Answer, Divergence, Ledger},
    view::Market,
};

/// The recorded updates cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Stray(#[from] Divergence);

/// A market that follows what it is given.
#[derive(Default)]
pub struct Replay {
    ledger: Ledger,
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
            (pubkey, Content::decode(&pubkey, &owner, lamports, &data))
        });
        replay.ledger.seed(Answer {
            context_slot: slot,
            accounts: decoded.collect(),
        });
        replay.ledger.seeded();
        replay
    }

    /// Takes in an update.
    ///
    /// # Errors
    /// [`Stray`] when it has no place in what was told before.
    pub fn update(&mut self, update: &Update) -> Result<(), Stray> {
        match &update.body {
            Body::Account(account) => self.ledger.account(account)?,
            Body::Slot(slot) => {
                if self.ledger.slot(slot)?
                    && let Some(visible) = self.ledger.visible()
                {
                    self.market.publish(visible);
                }
            }
            Body::Transaction(_) | Body::BlockMeta(_) => {}
        }
        Ok(())
    }

    /// The market that readers see.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.market
    }
}

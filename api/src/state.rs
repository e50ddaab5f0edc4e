//! What handlers may reach.

use std::sync::Arc;

use sluice_config::Exchange;
use sluice_store::Store;

use crate::{
    chain::{AssociatedAccounts, Rpc},
    market::Market,
};

/// Shared by all handlers; cheap to clone.
#[derive(Clone)]
pub struct AppState {
    market: Market,
    rpc: Arc<Rpc>,
    store: Store,
    exchange: Exchange,
    associated: Arc<AssociatedAccounts>,
}

impl AppState {
    /// Gathers what handlers may reach.
    #[must_use]
    pub fn new(market: Market, rpc: Arc<Rpc>, store: Store, exchange: Exchange) -> Self {
        Self {
            market,
            rpc,
            store,
            exchange,
            associated: Arc::default(),
        }
    }

    /// The live view of every pool.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.market
    }

    /// The cluster.
    #[must_use]
    pub fn rpc(&self) -> &Rpc {
        &self.rpc
    }

    /// The database.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The token accounts of wallets.
    #[must_use]
    pub fn associated(&self) -> &AssociatedAccounts {
        &self.associated
    }

    /// The program at the exchange's address.
    #[must_use]
    pub const fn exchange(&self) -> Exchange {
        self.exchange
    }
}

//! Application state: the market, the RPC client and the store, shared by all handlers.

use std::sync::Arc;

use sluice_market::Market;
use sluice_store::Store;
use sluice_transaction::{AssociatedAccounts, Exchange};

use crate::rpc::Rpc;

/// Shared by all handlers. A clone, of which every request makes several, is one pointer.
#[derive(Clone)]
pub struct AppState(Arc<Parts>);

struct Parts {
    market: Market,
    rpc: Arc<Rpc>,
    store: Store,
    exchange: Exchange,
    unwraps_lamports: bool,
    associated: AssociatedAccounts,
}

impl AppState {
    /// Gathers what handlers may reach.
    #[must_use]
    pub fn new(
        market: Market,
        rpc: Arc<Rpc>,
        store: Store,
        exchange: Exchange,
        unwraps_lamports: bool,
    ) -> Self {
        Self(Arc::new(Parts {
            market,
            rpc,
            store,
            exchange,
            unwraps_lamports,
            associated: AssociatedAccounts::default(),
        }))
    }

    /// The live view of every pool.
    #[must_use]
    pub fn market(&self) -> &Market {
        &self.0.market
    }

    /// The cluster.
    #[must_use]
    pub fn rpc(&self) -> &Rpc {
        &self.0.rpc
    }

    /// The database.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The token accounts of wallets.
    #[must_use]
    pub fn associated(&self) -> &AssociatedAccounts {
        &self.0.associated
    }

    /// Whether the cluster's token program has `unwrapLamports`.
    #[must_use]
    pub fn unwraps_lamports(&self) -> bool {
        self.0.unwraps_lamports
    }

    /// The program at the exchange's address.
    #[must_use]
    pub fn exchange(&self) -> Exchange {
        self.0.exchange
    }
}

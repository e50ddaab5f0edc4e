//! Application state: the market, the RPC client and the store, shared by all handlers.

use std::sync::Arc;

use service_kit::CancellationToken;
use sluice_market::Market;
use sluice_store::Store;
use sluice_transaction::AssociatedAccounts;

use crate::{
    calibrator::Calibrator, idempotency::IdempotentAnswers, places::Places,
    quote_feeds::QuoteFeeds, rpc::Rpc,
};

/// Shared by all handlers. A clone, of which every request makes several, is one pointer.
#[derive(Clone)]
pub struct AppState(Arc<Parts>);

struct Parts {
    market: Market,
    rpc: Arc<Rpc>,
    store: Store,
    calibrator: Arc<Calibrator>,
    unwraps_lamports: bool,
    associated: AssociatedAccounts,
    answers: IdempotentAnswers,
    streams: Places,
    quote_feeds: QuoteFeeds,
}

impl AppState {
    /// Gathers what handlers may reach.
    pub(crate) fn new(
        market: Market,
        rpc: Arc<Rpc>,
        store: Store,
        calibrator: Arc<Calibrator>,
        unwraps_lamports: bool,
        streams: Places,
        shutdown: CancellationToken,
    ) -> Self {
        Self(Arc::new(Parts {
            quote_feeds: QuoteFeeds::new(market.clone(), shutdown),
            market,
            rpc,
            store,
            calibrator,
            unwraps_lamports,
            associated: AssociatedAccounts::default(),
            answers: IdempotentAnswers::default(),
            streams,
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

    /// The answers that may be asked for again.
    #[must_use]
    pub(crate) fn answers(&self) -> &IdempotentAnswers {
        &self.0.answers
    }

    /// The places for streams.
    #[must_use]
    pub(crate) fn streams(&self) -> &Places {
        &self.0.streams
    }

    /// The quotes that streams show.
    #[must_use]
    pub(crate) fn quote_feeds(&self) -> &QuoteFeeds {
        &self.0.quote_feeds
    }

    /// Whether the cluster's token program has `unwrapLamports`.
    #[must_use]
    pub fn unwraps_lamports(&self) -> bool {
        self.0.unwraps_lamports
    }

    /// What the exchange's swaps may use.
    #[must_use]
    pub(crate) fn calibrator(&self) -> &Calibrator {
        &self.0.calibrator
    }
}

//! Application state: the market, the RPC client and the store, shared by all handlers.

use std::sync::Arc;

use service_kit::CancellationToken;
use sluice_config::CorsOrigins;
use sluice_market::Market;
use sluice_store::Store;
use sluice_transaction::AssociatedAccounts;

use crate::{
    calibrator::Calibrator, extract::Address, idempotency::IdempotentAnswers, places::Places,
    quote_feeds::QuoteFeeds, rpc::Rpc, sender::Sender,
};

/// Shared by all handlers. A clone, of which every request makes several, is one pointer.
#[derive(Clone)]
pub struct AppState(Arc<Parts>);

struct Parts {
    market: Market,
    program: Address,
    rpc: Arc<Rpc>,
    store: Store,
    calibrator: Arc<Calibrator>,
    unwraps_lamports: bool,
    associated: AssociatedAccounts,
    answers: IdempotentAnswers,
    streams: Places,
    origins: CorsOrigins,
    quote_feeds: QuoteFeeds,
    sender: Arc<Sender>,
    shutdown: CancellationToken,
}

/// What handlers know of the chain, and send to it.
pub(crate) struct ChainAccess {
    /// The live view of every pool.
    pub(crate) market: Market,
    /// The node.
    pub(crate) rpc: Arc<Rpc>,
    /// What the exchange's swaps may use.
    pub(crate) calibrator: Arc<Calibrator>,
    /// What sends transactions.
    pub(crate) sender: Arc<Sender>,
    /// Whether the token program has `unwrapLamports`.
    pub(crate) unwraps_lamports: bool,
}

impl AppState {
    /// Gathers what handlers may reach.
    pub(crate) fn new(
        chain: ChainAccess,
        store: Store,
        streams: Places,
        origins: CorsOrigins,
        shutdown: CancellationToken,
    ) -> Self {
        let ChainAccess {
            market,
            rpc,
            calibrator,
            sender,
            unwraps_lamports,
        } = chain;
        Self(Arc::new(Parts {
            quote_feeds: QuoteFeeds::new(market.clone(), shutdown.clone()),
            sender,
            shutdown,
            program: Address::new(&market.exchange().program),
            market,
            rpc,
            store,
            calibrator,
            unwraps_lamports,
            associated: AssociatedAccounts::default(),
            answers: IdempotentAnswers::default(),
            streams,
            origins,
        }))
    }

    /// The live view of every pool.
    #[must_use]
    pub fn market(&self) -> &Market {
        &self.0.market
    }

    /// The exchange's program, as answers name it.
    #[must_use]
    pub fn program(&self) -> Address {
        self.0.program
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

    /// The web pages that may call the public routes.
    #[must_use]
    pub(crate) fn origins(&self) -> &CorsOrigins {
        &self.0.origins
    }

    /// The quotes that streams show.
    #[must_use]
    pub(crate) fn quote_feeds(&self) -> &QuoteFeeds {
        &self.0.quote_feeds
    }

    /// What sends and follows transactions.
    #[must_use]
    pub(crate) fn sender(&self) -> &Arc<Sender> {
        &self.0.sender
    }

    /// Cancelled when the service ends.
    #[must_use]
    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
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

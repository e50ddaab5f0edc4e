//! Route: which of the API's routes a path is of, so that the labels of metrics stay few (pure).

/// A route, or a group of routes that are counted as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/v1/quote`.
    Quote,
    /// `/v1/quote/stream`.
    QuoteStream,
    /// `/v1/swap/transaction`.
    Transaction,
    /// `/v1/swap/instruction`.
    Instruction,
    /// `/v1/swap/check`.
    Check,
    /// `POST /v1/transactions`.
    Send,
    /// `/v1/transactions/explain`.
    Explain,
    /// What became of a transaction.
    Follow,
    /// `/v1/pools` and each pool.
    Pools,
    /// `/v1/mints/{mint}`.
    Mints,
    /// `/v1/priority-fees`.
    PriorityFees,
    /// Everything about webhooks.
    Webhooks,
    /// The health checks.
    Health,
    /// `/metrics`, `/openapi.json` and the pages that describe Sluice.
    Description,
    /// The console.
    Console,
    /// No route.
    Other,
}

impl Route {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 16] = [
        Self::Quote,
        Self::QuoteStream,
        Self::Transaction,
        Self::Instruction,
        Self::Check,
        Self::Send,
        Self::Explain,
        Self::Follow,
        Self::Pools,
        Self::Mints,
        Self::PriorityFees,
        Self::Webhooks,
        Self::Health,
        Self::Description,
        Self::Console,
        Self::Other,
    ];

    /// The route of a path.
    #[must_use]
    pub fn of(path: &str) -> Self {
        match path {
            "/v1/quote" => Self::Quote,
            "/v1/quote/stream" => Self::QuoteStream,
            "/v1/swap/transaction" => Self::Transaction,
            "/v1/swap/instruction" => Self::Instruction,
            "/v1/swap/check" => Self::Check,
            "/v1/transactions" => Self::Send,
            "/v1/transactions/explain" => Self::Explain,
            "/v1/pools" => Self::Pools,
            "/v1/priority-fees" => Self::PriorityFees,
            "/metrics" | "/openapi.json" | "/docs" | "/llms.txt" => Self::Description,
            "/console" => Self::Console,
            _ if path.starts_with("/console/") => Self::Console,
            _ if path.starts_with("/docs/") => Self::Description,
            _ if path.starts_with("/v1/transactions/") => Self::Follow,
            _ if path.starts_with("/v1/pools/") => Self::Pools,
            _ if path.starts_with("/v1/mints/") => Self::Mints,
            _ if path.starts_with("/api/webhooks") => Self::Webhooks,
            _ if path.starts_with("/health/") => Self::Health,
            _ => Self::Other,
        }
    }

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quote => "/v1/quote",
            Self::QuoteStream => "/v1/quote/stream",
            Self::Transaction => "/v1/swap/transaction",
            Self::Instruction => "/v1/swap/instruction",
            Self::Check => "/v1/swap/check",
            Self::Send => "/v1/transactions",
            Self::Explain => "/v1/transactions/explain",
            Self::Follow => "/v1/transactions/{signature}",
            Self::Pools => "/v1/pools",
            Self::Mints => "/v1/mints",
            Self::PriorityFees => "/v1/priority-fees",
            Self::Webhooks => "/api/webhooks",
            Self::Health => "/health",
            Self::Description => "description",
            Self::Console => "/console",
            Self::Other => "other",
        }
    }

    /// Whether a client's requests of it are counted against its limit. Those about webhooks have a limit for each API key,
    /// and health checks must be answered always.
    #[must_use]
    pub const fn is_limited(self) -> bool {
        !matches!(self, Self::Webhooks | Self::Health)
    }

    /// Whether answering it asks the RPC node.
    #[must_use]
    pub const fn asks_node(self) -> bool {
        matches!(
            self,
            Self::Transaction
                | Self::Instruction
                | Self::Check
                | Self::Send
                | Self::Explain
                | Self::PriorityFees
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_where_the_list_of_all_has_it() {
        for (index, route) in Route::ALL.into_iter().enumerate() {
            assert_eq!(route as usize, index);
            if route.name().starts_with("/v1/") && route != Route::Mints {
                assert_eq!(Route::of(route.name()), route);
            }
        }
    }

    #[test]
    fn what_is_asked_for_makes_no_new_names() {
        assert_eq!(Route::of("/api/webhooks/whk_1/test"), Route::Webhooks);
        assert_eq!(Route::of("/v1/pools/one"), Route::Pools);
        assert_eq!(Route::of("/v1/mints/one"), Route::Mints);
        for path in ["/", "/v1/quote/", "/v1/quote/x", "/V1/quote", "/health"] {
            assert_eq!(Route::of(path), Route::Other, "{path}");
        }
    }
}

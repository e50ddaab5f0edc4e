//! Problem codes: the stable names by which callers tell problems apart, each listed once.

use utoipa::openapi::{
    RefOr,
    schema::{ObjectBuilder, Schema, SchemaType, Type},
};

macro_rules! problem_codes {
    ($($code:ident = $text:literal,)*) => {
        /// Stable name of a problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum ProblemCode {
            $($code,)*
        }

        impl ProblemCode {
            /// Every code, in the order of the alphabet.
            const ALL: &[Self] = &[$(Self::$code,)*];

            /// The name on the wire.
            pub(super) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $text,)*
                }
            }
        }
    };
}

problem_codes! {
    AddressQuota = "address_quota",
    AmountTooLarge = "amount_too_large",
    AmountTooSmall = "amount_too_small",
    BackfillPending = "backfill_pending",
    BodyTimeout = "body_timeout",
    BodyTooLarge = "body_too_large",
    FeeWalletUnusable = "fee_wallet_unusable",
    FilterNotServed = "filter_not_served",
    IdempotencyKeyReused = "idempotency_key_reused",
    InsufficientBalance = "insufficient_balance",
    Internal = "internal",
    InvalidBody = "invalid_body",
    InvalidField = "invalid_field",
    MarketNotReady = "market_not_ready",
    MessageRate = "message_rate",
    MessageTooLarge = "message_too_large",
    MethodNotAllowed = "method_not_allowed",
    MinimumOutOutOfRange = "minimum_out_out_of_range",
    MissingField = "missing_field",
    MissingScope = "missing_scope",
    NoPool = "no_pool",
    NoRoute = "no_route",
    NonceAccountUnusable = "nonce_account_unusable",
    NotFound = "not_found",
    NotHeld = "not_held",
    OriginRefused = "origin_refused",
    PoolMintMismatch = "pool_mint_mismatch",
    PoolNotOpen = "pool_not_open",
    PoolNotTradable = "pool_not_tradable",
    PriceImpactTooHigh = "price_impact_too_high",
    QuoteStale = "quote_stale",
    RateLimited = "rate_limited",
    ReceiverUnusable = "receiver_unusable",
    RpcFailed = "rpc_failed",
    RpcTimeout = "rpc_timeout",
    SimulationFailed = "simulation_failed",
    Stopping = "stopping",
    StoreUnavailable = "store_unavailable",
    StoredQuota = "stored_quota",
    TokenAccountUnusable = "token_account_unusable",
    TooManyStreams = "too_many_streams",
    TooManyTransactions = "too_many_transactions",
    TooManyWebhooks = "too_many_webhooks",
    TransactionTooLarge = "transaction_too_large",
    TransactionVersionUnsupported = "transaction_version_unsupported",
    Unauthorized = "unauthorized",
    UnexpectedMessage = "unexpected_message",
    UnknownField = "unknown_field",
    UnknownPool = "unknown_pool",
    UnsupportedMediaType = "unsupported_media_type",
    VersionConflict = "version_conflict",
    WalletOffCurve = "wallet_off_curve",
    WrongKindOfWebhook = "wrong_kind_of_webhook",
    WrongProgram = "wrong_program",
}

/// The codes as the document lists them, so that a typed client knows them all.
pub(super) fn schema() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .enum_values(Some(ProblemCode::ALL.iter().map(|code| code.as_str())))
        .description(Some(
            "Stable name of the problem. Later versions may add names.",
        ))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_is_listed_twice_and_all_are_in_order() {
        let names: Vec<_> = ProblemCode::ALL.iter().map(|code| code.as_str()).collect();
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    }
}

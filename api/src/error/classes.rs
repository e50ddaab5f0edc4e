//! Status, code and title of every error (pure).

use axum::http::StatusCode;

use super::{
    ApiError,
    code::ProblemCode as C,
    problem::{Problem, passing, problem},
};

impl ApiError {
    /// What this error is to the caller.
    pub(super) const fn problem(&self) -> Problem {
        use StatusCode as S;
        const REFUSED: S = S::UNPROCESSABLE_ENTITY;
        match self {
            Self::InvalidField { .. } => problem(S::BAD_REQUEST, C::InvalidField, "Invalid value"),
            Self::MissingField { .. } => problem(S::BAD_REQUEST, C::MissingField, "Missing value"),
            Self::UnknownField { .. } => {
                problem(S::BAD_REQUEST, C::UnknownField, "Unknown parameter")
            }
            Self::InvalidBody(_) => problem(S::BAD_REQUEST, C::InvalidBody, "Invalid body"),
            Self::BodyTimeout => passing(S::REQUEST_TIMEOUT, C::BodyTimeout, "Body too slow"),
            Self::BodyTooLarge { .. } => {
                problem(S::PAYLOAD_TOO_LARGE, C::BodyTooLarge, "Body too large")
            }
            Self::UnsupportedMediaType => problem(
                S::UNSUPPORTED_MEDIA_TYPE,
                C::UnsupportedMediaType,
                "Unsupported media type",
            ),
            Self::NoPool { .. } => problem(S::NOT_FOUND, C::NoPool, "No pool"),
            Self::UnknownPool { .. } => problem(S::NOT_FOUND, C::UnknownPool, "Unknown pool"),
            Self::PoolNotOpen { .. } => passing(S::CONFLICT, C::PoolNotOpen, "Pool not open yet"),
            Self::PoolNotTradable { .. } => {
                problem(S::CONFLICT, C::PoolNotTradable, "Pool not tradable")
            }
            Self::AmountTooSmall => problem(REFUSED, C::AmountTooSmall, "Amount too small"),
            Self::AmountTooLarge { .. } => problem(REFUSED, C::AmountTooLarge, "Amount too large"),
            Self::PriceImpactTooHigh { .. } => {
                problem(REFUSED, C::PriceImpactTooHigh, "Price impact too high")
            }
            Self::Swap(refusal) => refusal.problem(),
            Self::MarketNotReady { .. } => passing(
                S::SERVICE_UNAVAILABLE,
                C::MarketNotReady,
                "Market not ready",
            ),
            Self::NotFound { .. } => problem(S::NOT_FOUND, C::NotFound, "Not found"),
            Self::Unauthorized { .. } => problem(S::UNAUTHORIZED, C::Unauthorized, "Unauthorized"),
            Self::MissingScope { .. } => problem(S::FORBIDDEN, C::MissingScope, "Missing scope"),
            Self::RateLimited { .. }
            | Self::TooManyRequests { .. }
            | Self::TooManyStreams { .. }
            | Self::TooManyTransactions
            | Self::Stopping => self.load_problem(),
            Self::OriginRefused { .. } | Self::UnexpectedMessage | Self::MessageTooLarge { .. } => {
                self.socket_problem()
            }
            Self::TooManyWebhooks { .. }
            | Self::AddressQuota { .. }
            | Self::StoredQuota { .. }
            | Self::MessageRate { .. }
            | Self::NotServed { .. }
            | Self::BackfillPending
            | Self::IdempotencyKeyReused { .. }
            | Self::VersionConflict { .. }
            | Self::WrongKindOfWebhook { .. } => self.webhook_problem(),
            Self::NotHeld { .. } => problem(S::CONFLICT, C::NotHeld, "Not held"),
            Self::NoRoute => problem(S::NOT_FOUND, C::NoRoute, "No such path"),
            Self::MethodNotAllowed => problem(
                S::METHOD_NOT_ALLOWED,
                C::MethodNotAllowed,
                "Method not allowed",
            ),
            Self::RpcTimeout
            | Self::RpcFailed(_)
            | Self::StoreUnavailable(_)
            | Self::Internal(_) => self.failure_problem(),
        }
    }

    /// What failed behind the API, or in it.
    const fn failure_problem(&self) -> Problem {
        use StatusCode as S;
        match self {
            Self::RpcTimeout => passing(S::GATEWAY_TIMEOUT, C::RpcTimeout, "RPC timeout"),
            Self::RpcFailed(_) => passing(S::BAD_GATEWAY, C::RpcFailed, "RPC failed"),
            Self::StoreUnavailable(_) => passing(
                S::SERVICE_UNAVAILABLE,
                C::StoreUnavailable,
                "Database not available",
            ),
            _ => problem(S::INTERNAL_SERVER_ERROR, C::Internal, "Internal error"),
        }
    }

    /// What the service has no room or no time for.
    const fn load_problem(&self) -> Problem {
        use StatusCode as S;
        match self {
            Self::RateLimited { .. } | Self::TooManyRequests { .. } => {
                passing(S::TOO_MANY_REQUESTS, C::RateLimited, "Too many requests")
            }
            Self::TooManyStreams { .. } => {
                passing(S::TOO_MANY_REQUESTS, C::TooManyStreams, "Too many streams")
            }
            Self::TooManyTransactions => passing(
                S::SERVICE_UNAVAILABLE,
                C::TooManyTransactions,
                "Too many transactions",
            ),
            Self::Stopping => passing(S::SERVICE_UNAVAILABLE, C::Stopping, "Shutting down"),
            _ => problem(S::INTERNAL_SERVER_ERROR, C::Internal, "Internal error"),
        }
    }

    /// What a WebSocket is not for.
    const fn socket_problem(&self) -> Problem {
        use StatusCode as S;
        match self {
            Self::OriginRefused { .. } => problem(S::FORBIDDEN, C::OriginRefused, "Origin refused"),
            Self::UnexpectedMessage => {
                problem(S::BAD_REQUEST, C::UnexpectedMessage, "Unexpected message")
            }
            Self::MessageTooLarge { .. } => problem(
                S::PAYLOAD_TOO_LARGE,
                C::MessageTooLarge,
                "Message too large",
            ),
            _ => problem(S::INTERNAL_SERVER_ERROR, C::Internal, "Internal error"),
        }
    }

    /// What keeps a webhook from being written, or from being told more.
    const fn webhook_problem(&self) -> Problem {
        use StatusCode as S;
        match self {
            Self::TooManyWebhooks { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::TooManyWebhooks,
                "Too many webhooks",
            ),
            Self::AddressQuota { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::AddressQuota,
                "Too many addresses",
            ),
            Self::StoredQuota { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::StoredQuota,
                "Too many stored bytes",
            ),
            Self::MessageRate { .. } => passing(
                S::TOO_MANY_REQUESTS,
                C::MessageRate,
                "Too many messages per second",
            ),
            Self::NotServed { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::FilterNotServed,
                "Filter not served",
            ),
            Self::IdempotencyKeyReused { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::IdempotencyKeyReused,
                "Idempotency key reused",
            ),
            Self::BackfillPending => problem(S::CONFLICT, C::BackfillPending, "Backfill not done"),
            Self::VersionConflict { .. } => problem(
                S::PRECONDITION_FAILED,
                C::VersionConflict,
                "Changed meanwhile",
            ),
            Self::WrongKindOfWebhook { .. } => {
                problem(S::CONFLICT, C::WrongKindOfWebhook, "Not for this webhook")
            }
            _ => problem(S::INTERNAL_SERVER_ERROR, C::Internal, "Internal error"),
        }
    }
}

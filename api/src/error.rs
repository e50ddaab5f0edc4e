//! Errors of the API: every way a request can fail, as RFC 9457 problem details with a stable `code`.
//!
//! A problem says what was wrong, what to do about it, and whether the same request may succeed later.
//!
//! The cause of a 5xx never leaves the process; it is logged here, once.

mod classes;
mod code;
mod members;
mod problem;
mod swap_refusal;

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use sluice_chain_types::Slot;
use sluice_market::NotReady;
use sluice_store::Scope;
use thiserror::Error;
use utoipa::ToSchema;

pub use swap_refusal::SwapRefusal;

use crate::{
    rate_limit::{Opened, Share},
    request_id,
};

/// Media type of problem details.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Why a request was not answered as asked. `Display` is the `detail` that the caller reads.
#[derive(Debug, Error)]
pub enum ApiError {
    /// A query parameter, path segment or body field has an unusable value.
    #[error("{field}: {fault}")]
    InvalidField {
        /// Name as the caller wrote it; dotted for nested body fields.
        field: String,
        /// What is wrong and what would be right.
        fault: String,
    },
    /// A required parameter or field is absent.
    #[error("{field} is required")]
    MissingField {
        /// Its name.
        field: &'static str,
    },
    /// A parameter that this endpoint does not have.
    #[error("{field} is not a parameter or field of this endpoint; known are {known}")]
    UnknownField {
        /// Its name.
        field: String,
        /// The names that exist.
        known: String,
    },
    /// The body is not JSON of the expected shape.
    #[error("{0}")]
    InvalidBody(String),
    /// The body is longer than this endpoint reads.
    #[error("the body is longer than {limit} bytes")]
    BodyTooLarge {
        /// Limit, bytes.
        limit: usize,
    },
    /// The body did not arrive in time.
    #[error("the body did not arrive in time; send it at once")]
    BodyTimeout,
    /// The body is not declared as JSON.
    #[error("send the body with Content-Type: application/json")]
    UnsupportedMediaType,
    /// No pool of the exchange trades the two mints.
    #[error("no pool trades {input_mint} for {output_mint}")]
    NoPool {
        /// Mint asked to go in.
        input_mint: String,
        /// Mint asked to come out.
        output_mint: String,
    },
    /// The named pool is not known.
    #[error("{pool} is not a pool of the exchange that trades these mints")]
    UnknownPool {
        /// Its address.
        pool: String,
    },
    /// The pool opens later.
    #[error("pool {pool} opens at unix time {open_time}")]
    PoolNotOpen {
        /// Its address.
        pool: String,
        /// Unix time, seconds.
        open_time: u64,
    },
    /// The chain would refuse this swap whatever the amount.
    #[error("pool {pool} cannot be traded: {reason}")]
    PoolNotTradable {
        /// Its address.
        pool: String,
        /// Why.
        reason: String,
    },
    /// Nothing would be received for the amount.
    #[error("nothing would be received for this amount; ask with a larger one")]
    AmountTooSmall,
    /// More is asked for than the pool holds.
    #[error("pool {pool} does not hold as much as is asked for; ask for less")]
    AmountTooLarge {
        /// Its address.
        pool: String,
    },
    /// The amount moves the price further than the caller allows.
    #[error(
        "the amount moves the price by {impact} basis points, more than maxPriceImpactBps {most}; swap less at a time, or \
         allow more"
    )]
    PriceImpactTooHigh {
        /// How far, basis points.
        impact: u16,
        /// The most that is allowed, basis points.
        most: u16,
    },
    /// A swap was asked for that the chain would refuse, or that is not what the quote says.
    #[error(transparent)]
    Swap(#[from] SwapRefusal),
    /// The in-memory market does not match the chain at the moment.
    #[error("the market is not ready: {reason}")]
    MarketNotReady {
        /// Why.
        reason: String,
        /// Last slot that the market is true for.
        slot: Option<u64>,
        /// Slots that the chain was reported to be ahead of it.
        lag: Option<u64>,
    },
    /// No such resource.
    #[error("there is no {what} {id}")]
    NotFound {
        /// Kind of resource.
        what: &'static str,
        /// Identifier asked for.
        id: String,
    },
    /// The caller has as many webhooks as are allowed.
    #[error("you have {limit} webhooks, which is the limit; delete one first")]
    TooManyWebhooks {
        /// How many are allowed.
        limit: u32,
    },
    /// The caller's webhooks would watch more addresses together than are allowed.
    #[error(
        "filters: your webhooks would watch {count} addresses together, and {limit} are allowed; remove some, or ask the \
         operator for more"
    )]
    AddressQuota {
        /// How many they would watch.
        count: u64,
        /// How many are allowed.
        limit: u32,
    },
    /// As much is kept for the caller as is allowed.
    #[error(
        "{bytes} bytes of messages are kept for your webhooks, and {limit} are allowed; delete webhooks, wait until the oldest messages \
         are removed, or ask the operator for more"
    )]
    StoredQuota {
        /// How many are kept.
        bytes: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// More messages than are allowed in a second are due for the caller.
    #[error(
        "{limit} messages a second are allowed to your webhooks, and those beyond are being held back; try again in \
         {retry_after_secs} s or later, or ask the operator for more"
    )]
    MessageRate {
        /// How many are allowed.
        limit: u32,
        /// How long those that wait take, unless more come meanwhile, seconds.
        retry_after_secs: u64,
    },
    /// The backfill of the webhook that was asked for before is not done.
    #[error(
        "the one that was asked for before is not done yet; see how far it is, and ask again when it is done"
    )]
    BackfillPending,
    /// The idempotency key was given with another request, which created a webhook.
    #[error(
        "Idempotency-Key: was given with another request, which created {webhook}; repeat that request unchanged, or choose \
         another key"
    )]
    IdempotencyKeyReused {
        /// The webhook that the earlier request created.
        webhook: String,
    },
    /// The stream's servers do not serve as many addresses.
    #[error(
        "{field} would have {count} addresses, and the stream's servers serve {limit}; name fewer, or have the operator use a \
         server with higher limits"
    )]
    NotServed {
        /// The field.
        field: &'static str,
        /// How many addresses it would have.
        count: usize,
        /// How many are served.
        limit: u64,
    },
    /// No API key, or not one that is accepted.
    #[error("{fault}")]
    Unauthorized {
        /// What is wrong and what would be right.
        fault: &'static str,
        /// Whether a key was sent at all.
        with_key: bool,
    },
    /// The API key may not do this.
    #[error(
        "this needs an API key with the scope {scope}, which `sluice keys add NAME --scope {scope}` makes on the server"
    )]
    MissingScope {
        /// The scope that it needs.
        scope: Scope,
    },
    /// The caller asks too often.
    #[error("too many requests with this API key; try again in {retry_after_secs} s")]
    RateLimited {
        /// When the next request will be answered, seconds.
        retry_after_secs: u64,
    },
    /// The client asks too often.
    #[error("too many requests from this address ({limit}); try again in {retry_after_secs} s")]
    TooManyRequests {
        /// Name of the limit.
        limit: &'static str,
        /// When the next request will be answered, seconds.
        retry_after_secs: u64,
    },
    /// As many streams are open as may be.
    #[error("{}", too_many_streams(*.of_client))]
    TooManyStreams {
        /// The limit of the client, or `None` where that of all clients is reached.
        of_client: Option<usize>,
    },
    /// As many transactions are followed as may be.
    #[error(
        "as many transactions are on their way as this server follows; send it again in a moment"
    )]
    TooManyTransactions,
    /// A page of another origin asks for a WebSocket, and may not.
    #[error(
        "Origin: pages of {origin} may not open a WebSocket here; open it from a page of this host, or have the operator add \
         the origin to api.cors-origins"
    )]
    OriginRefused {
        /// Of which page.
        origin: String,
    },
    /// A reader of a stream sends a message down its WebSocket.
    #[error("this stream takes no messages; to ask for another one, open another WebSocket")]
    UnexpectedMessage,
    /// It sends a long one.
    #[error(
        "a message is longer than {limit} bytes, and this stream takes none; send nothing but pings"
    )]
    MessageTooLarge {
        /// Limit, bytes.
        limit: usize,
    },
    /// The service ends.
    #[error("the service is shutting down; connect again")]
    Stopping,
    /// The resource was written since the caller read it.
    #[error(
        "it is at version {current} by now; read it again, and repeat the change on what is there"
    )]
    VersionConflict {
        /// Its version.
        current: u64,
    },
    /// The operation does not fit this webhook.
    #[error("{fault}")]
    WrongKindOfWebhook {
        /// What is wrong and what would be right.
        fault: &'static str,
    },
    /// The result of a delivery came from somebody who does not hold the message any more.
    #[error("message {id} is not held by an open stream here; it will be sent again")]
    NotHeld {
        /// Its identifier.
        id: String,
    },
    /// No such path.
    #[error("there is no such path; GET /openapi.json lists every route")]
    NoRoute,
    /// The path exists, not with this method.
    #[error("this path does not answer to this method")]
    MethodNotAllowed,
    /// The cluster's RPC did not answer in time.
    #[error("the cluster's RPC did not answer in time; try again")]
    RpcTimeout,
    /// The cluster's RPC failed.
    #[error("the cluster's RPC failed; try again")]
    RpcFailed(#[source] anyhow::Error),
    /// The database failed.
    #[error("the database is not available; try again later")]
    StoreUnavailable(#[source] anyhow::Error),
    /// A fault of ours.
    #[error("internal error")]
    Internal(#[source] anyhow::Error),
}

/// An RFC 9457 problem document. Members beside these say more, depending on the code: `field`, `pool`, `openTime`,
/// `account`, `unit`, `held` and `needed` (with `heldString` and `neededString`), `slot`, `size`, `limit`, `scope`, `remedies`, `priceImpactBps`, `maxPriceImpactBps`, and for `quote_stale` a fresh `quote` with its `context`.
#[derive(ToSchema)]
#[schema(as = Problem)]
#[expect(dead_code, reason = "describes what `IntoResponse` writes")]
pub struct ProblemBody {
    /// Always `about:blank`; `code` distinguishes problems.
    r#type: String,
    /// The code in words.
    title: String,
    /// The HTTP status.
    status: u16,
    #[schema(schema_with = code::schema)]
    code: String,
    /// What was wrong, and what to do about it.
    detail: String,
    /// Whether the same request may succeed later.
    retryable: bool,
}

impl ApiError {
    /// A faulty parameter or field.
    pub fn invalid(field: impl Into<String>, fault: impl Into<String>) -> Self {
        Self::InvalidField {
            field: field.into(),
            fault: fault.into(),
        }
    }

    /// The stable code of this error.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.problem().code.as_str()
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.problem().retryable
    }

    /// The problem document.
    #[must_use]
    pub fn document(&self) -> Value {
        let problem = self.problem();
        let mut document = self.members();
        document.insert("type".into(), json!("about:blank"));
        document.insert("title".into(), json!(problem.title));
        document.insert("status".into(), json!(problem.status.as_u16()));
        document.insert("code".into(), json!(problem.code.as_str()));
        document.insert("detail".into(), json!(self.to_string()));
        document.insert("retryable".into(), json!(problem.retryable));
        Value::Object(document)
    }

    /// The header that belongs to this error.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Unauthorized { with_key, .. } => {
                let challenge = if *with_key {
                    "Bearer realm=\"sluice\", error=\"invalid_token\""
                } else {
                    "Bearer realm=\"sluice\""
                };
                let value = HeaderValue::from_static(challenge);
                Some((header::WWW_AUTHENTICATE, value))
            }
            Self::RateLimited { retry_after_secs }
            | Self::TooManyRequests {
                retry_after_secs, ..
            }
            | Self::MessageRate {
                retry_after_secs, ..
            } => Some((header::RETRY_AFTER, HeaderValue::from(*retry_after_secs))),
            _ => None,
        }
    }

    /// Logs the cause, which no answer shows.
    fn log_cause(&self) {
        match self {
            Self::RpcFailed(cause) | Self::StoreUnavailable(cause) | Self::Internal(cause) => {
                tracing::error!(
                    code = self.code(),
                    request_id = request_id::current(),
                    cause = format!("{cause:#}"),
                    "request failed"
                );
            }
            Self::RpcTimeout => {
                let request_id = request_id::current();
                tracing::warn!(code = self.code(), request_id, "request failed");
            }
            _ => {}
        }
    }
}

fn too_many_streams(of_client: Option<usize>) -> String {
    match of_client {
        None => "as many streams are open as this server serves; try again later".to_owned(),
        Some(most) => {
            format!("this address has {most} streams open, which is the limit; end one first")
        }
    }
}

impl From<NotReady> for ApiError {
    fn from(NotReady { reason, slot, lag }: NotReady) -> Self {
        Self::MarketNotReady {
            reason,
            slot: slot.map(Slot::get),
            lag,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log_cause();
        let problem = self.problem();
        let header = self.header();
        let mut response = (problem.status, Json(self.document())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if problem.status == StatusCode::SERVICE_UNAVAILABLE {
            // The market is refilled, and the database reopened, within about a second.
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some((name, value)) = header {
            headers.insert(name, value);
        }
        if let Self::TooManyStreams {
            of_client: Some(most),
        } = self
        {
            let (name, left) = (Opened::Streams.name(), 0);
            Share { name, left, most }.put(headers);
        }
        response
    }
}

#[cfg(test)]
mod tests;

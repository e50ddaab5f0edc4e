//! `GET /v1/quote/stream`: the quote of every slot in which it changed, as server-sent events.

use std::convert::Infallible;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderName},
    response::Response,
};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};

use super::{
    get::{CommitmentParameter, parse, quoted},
    response::QuoteResponse,
    wire::SwapModeName,
};
use crate::{
    answer,
    client::Peer,
    error::{ApiError, ProblemBody},
    extract::{Address, PoolsText, PositiveAmount},
    places::Place,
    quote_feeds::{Question, Reader},
    state::AppState,
};

/// The last event that a reader has of the stream before.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The first bytes of a stream: after which time, in milliseconds, a reader that lost it connects again.
const OPENING: Bytes = Bytes::from_static(b"retry: 1000\n\n");

/// A stream of quotes: the quote of every slot in which it changed
///
/// Server-sent events, with the parameters of `/v1/quote`. The first event is the quote as it is now; another one follows
/// in each slot in which an amount or the pool is another: `event: quote`, `id` the slot, `data` what `/v1/quote`
/// answers. A quote stays true until the next one comes; a comment every 15 seconds names the slot up to which it is. A
/// reader that is slow is given the newest quote, and none of those between. The stream ends with `event: end` and a
/// problem as `data`, when there is no quote any more; connect again where it is `retryable`, with `Last-Event-ID` the newest
/// quote is not repeated. At `confirmed` the ids rise; at `processed` a slot may be abandoned, and the quote of an earlier
/// one come after it. A problem instead of a stream is what `/v1/quote` would answer.
#[utoipa::path(
    get,
    path = "/v1/quote/stream",
    tag = "quote",
    operation_id = "streamQuotes",
    params(
        ("inputMint" = Address, Query, description = "Mint that goes in."),
        ("outputMint" = Address, Query, description = "Mint that comes out; another one."),
        ("amount" = PositiveAmount, Query, description = "What goes in, or with ExactOut comes out, smallest units; above 0."),
        ("slippageBps" = Option<u16>, Query, maximum = 10_000, description = "Default 50."),
        ("swapMode" = Option<SwapModeName>, Query, description = "Which amount is fixed. Default ExactIn."),
        ("maxHops" = Option<u8>, Query, minimum = 1, maximum = 2, description = "The most pools in a row. Default 1; with ExactOut only 1."),
        ("pool" = Option<PoolsText>, Query, description = "The only pool to consider; with maxHops=2 also two of them."),
        ("platformFeeBps" = Option<u16>, Query, maximum = 9_999, description = "What of all that the user pays a platform gets before the swap. Default none."),
        ("feeWallet" = Option<Address>, Query, description = "The platform's wallet, as the swap endpoints take it; it changes nothing about a quote."),
        ("maxPriceImpactBps" = Option<u16>, Query, maximum = 10_000, description = "The most that the amount may move the price, fees excluded; beyond, the stream ends with price_impact_too_high. Default no limit."),
        ("commitment" = Option<CommitmentParameter>, Query, description = "Default processed."),
        ("Last-Event-ID" = Option<String>, Header, description = "The slot of the last event that was received; what is no number is ignored."),
    ),
    responses(
        (status = 200, description = "The stream; `data` of each event `quote` is a quote.", body = QuoteResponse, content_type = "text/event-stream"),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn stream(State(state): State<AppState>, request: Request) -> Result<Response, ApiError> {
    let reader = reader(&state, request.uri().query().unwrap_or_default())?;
    let peer = Peer::of(request.extensions());
    let place = state.streams().of_request(peer, request.headers())?;
    let reader = resumed(reader, request.headers());
    Ok(answer::events(Body::from_stream(events(reader, place))))
}

/// A reader of the quotes that the query asks for.
fn reader(state: &AppState, query: &str) -> Result<Reader, ApiError> {
    let (ask, slippage) = parse(query)?;
    let market = state.market().clone();
    let price = move || quoted(&market, &ask, slippage);
    state.quote_feeds().read(Question { ask, slippage }, price)
}

fn resumed(mut reader: Reader, headers: &HeaderMap) -> Reader {
    let last = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    if let Some(slot) = last.and_then(|id| id.parse().ok()) {
        reader.resume_after(slot);
    }
    reader
}

/// The bytes of a stream, which holds its place until it is dropped.
fn events(reader: Reader, place: Place) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let events = stream::unfold((reader, place), async |(mut reader, place)| {
        let event = reader.next().await?;
        Some((Ok(event.into_sse()), (reader, place)))
    });
    stream::once(async { Ok(OPENING) }).chain(events)
}

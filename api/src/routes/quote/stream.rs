//! `GET /v1/quote/stream`: the quote of every slot in which it changed, as server-sent events or over WebSocket.

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
    get::{self, CommitmentParameter, quoted},
    response::QuoteResponse,
    wire::SwapModeName,
};
use crate::{
    answer,
    client::Peer,
    error::{ApiError, ProblemBody},
    extract::{Address, PoolsText, PositiveAmount, QueryMap},
    places::Place,
    quote_feeds::{Crowds, Question, Reader},
    server::http2::{ConnectionScope, TakenOver},
    sockets::{self, Opening, SocketEvent, SocketEvents},
    state::AppState,
};

/// The last event that a reader has of the stream before.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The same as a parameter: a web page can set no header of a WebSocket.
const LAST_EVENT_ID_PARAMETER: &str = "lastEventId";

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
///
/// With `Upgrade: websocket` the same comes over WebSocket: each event is a text message
/// `{"event": "quote", "id": <slot>, "data": <quote>}`, the sign of life a ping that names the slot. After `end` the server
/// closes, with the problem's code as the reason: 1013 where it is `retryable`, 1008 where not, 1001 when the service stops.
/// The stream takes no messages (1008), and none of more than 1 KiB (1009). A web page needs an origin that
/// `api.cors-origins` allows, or is refused with `origin_refused`.
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
        ("lastEventId" = Option<u64>, Query, description = "As the header Last-Event-ID, which goes before: a web page can set none for a WebSocket."),
        ("Last-Event-ID" = Option<String>, Header, description = "The slot of the last event that was received; what is no number is ignored."),
    ),
    responses(
        (status = 101, description = "The stream over WebSocket, where `Upgrade: websocket` asks for it."),
        (status = 200, description = "The stream; `data` of each event `quote` is a quote.", body = QuoteResponse, content_type = "text/event-stream"),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn stream(
    State(state): State<AppState>,
    mut request: Request,
) -> Result<Response, ApiError> {
    let opening = sockets::asked(state.origins(), &mut request)?;
    let reader = reader(
        &state,
        request.uri().query().unwrap_or_default(),
        request.headers(),
    )?;
    let peer = Peer::of(request.extensions());
    let place = state.streams().of_request(peer, request.headers())?;
    let share = place.share();
    let connection = request.extensions_mut().remove::<ConnectionScope>();
    let mut answer = match (opening, connection.map(|connection| connection.kept())) {
        (Some(opening), None) => opening.answer(Quotes {
            reader,
            _place: place,
        }),
        (None, None) => answer::events(Body::from_stream(events(reader, place))),
        (Some(opening), Some(crowds)) => messages_in(crowds, opening, reader, place),
        (None, Some(crowds)) => events_in(crowds, reader, place),
    };
    if let Some(share) = share {
        share.put(answer.headers_mut());
    }
    Ok(answer)
}

/// A reader of the quotes that the query asks for, after those that it has.
fn reader(state: &AppState, query: &str, headers: &HeaderMap) -> Result<Reader, ApiError> {
    let known = [&get::PARAMETERS[..], &[LAST_EVENT_ID_PARAMETER]].concat();
    let query = QueryMap::parse(query, &known)?;
    let last = last_event_id(&query, headers)?;
    let asked = get::read(&query, state.program())?;
    let (ask, slippage) = (asked.ask, asked.slippage);
    let market = state.market().clone();
    let price = move || quoted(&market, &asked);
    let mut reader = state
        .quote_feeds()
        .read(Question { ask, slippage }, price)?;
    if let Some(slot) = last {
        reader.resume_after(slot);
    }
    Ok(reader)
}

/// The header first: a browser that connects again sets it, and asks with the parameters of the first time.
fn last_event_id(query: &QueryMap, headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let parameter = query.get(LAST_EVENT_ID_PARAMETER).map(str::parse::<u64>);
    let parameter = parameter.transpose().map_err(|_| {
        let fault =
            "is no id of an event; give that of the last one, which is a slot, or leave it out";
        ApiError::invalid(LAST_EVENT_ID_PARAMETER, fault)
    })?;
    let header = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    Ok(header.and_then(|id| id.parse().ok()).or(parameter))
}

/// The bytes of a stream, which holds its place until it is dropped.
fn events(reader: Reader, place: Place) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let events = stream::unfold((reader, place), async |(mut reader, place)| {
        let event = reader.next().await?;
        Some((Ok(event.into_sse()), (reader, place)))
    });
    stream::once(async { Ok(OPENING) }).chain(events)
}

/// The same of one that shares a connection with others.
fn events_in(crowds: Crowds, reader: Reader, place: Place) -> Response {
    let mut answer = answer::events(Body::empty());
    let taken_over = TakenOver::by(move |stream| {
        let sender = stream.sender();
        // Where nobody is there any more, the crowd finds that too.
        let _ = sender.turn().send(OPENING);
        crowds.send_events(reader, sender, place);
    });
    answer.extensions_mut().insert(taken_over);
    answer
}

/// The same of one over WebSocket.
fn messages_in(crowds: Crowds, opening: Opening, reader: Reader, place: Place) -> Response {
    opening.answer_shared(move |sender| crowds.send_messages(reader, sender, place))
}

/// The messages of a stream, which holds its place until it is dropped.
struct Quotes {
    reader: Reader,
    _place: Place,
}

impl SocketEvents for Quotes {
    async fn next(&mut self) -> Option<SocketEvent> {
        Some(self.reader.next().await?.into_socket())
    }
}

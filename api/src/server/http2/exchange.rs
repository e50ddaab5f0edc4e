//! Exchange: one request over HTTP/2 and its answer.

use std::future::poll_fn;

use axum::{
    body::{Body, HttpBody},
    http::{HeaderValue, Method, Request, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use h2::{RecvStream, SendStream, server::SendResponse};
use http_body_util::BodyExt;
use service_kit::Clock;

use super::{
    origin_form::put_in_origin_form,
    request_body::RequestBody,
    scope::ConnectionScope,
    stream::{Gone, OpenStream, Sending, TakenOver},
};
use crate::{error::ApiError, request_id::X_REQUEST_ID, server::requests::Requests};

/// Answers a request, until its client gives it up.
pub(super) fn of(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    requests: &Requests,
    scope: &ConnectionScope,
) -> impl Future<Output = ()> + Send + use<> {
    // What comes of a stream that becomes another protocol's is not the body of a request.
    let (mut request, receiving) = if request.method() == Method::CONNECT {
        let (head, receiving) = request.into_parts();
        (Request::from_parts(head, Body::empty()), Some(receiving))
    } else {
        (request.map(|body| Body::new(RequestBody(body))), None)
    };
    put_in_origin_form(&mut request);
    let (answer, under_way) = requests.answer_over_http2(request, scope);
    let deadline = requests.write_deadline;
    async move {
        let answer = tokio::select! {
            answer = answer => answer,
            _ = poll_fn(|context| respond.poll_reset(context)) => return,
        };
        let answer = if receiving.is_some() {
            connected(answer)
        } else {
            answer
        };
        // What fails here is the stream, and nobody is left to be told.
        let sending = |stream| Sending::new(stream, deadline, under_way);
        let _ = send(answer, &mut respond, receiving, sending).await;
    }
}

async fn send(
    answer: Response,
    respond: &mut SendResponse<Bytes>,
    receiving: Option<RecvStream>,
    sending: impl FnOnce(SendStream<Bytes>) -> Sending,
) -> Result<(), Gone> {
    let (mut head, body) = answer.into_parts();
    let taken_over = head.extensions.remove::<TakenOver>();
    let is_over = taken_over.is_none() && body.is_end_stream();
    let headers = &mut head.headers;
    if taken_over.is_some() {
        // That of the body in whose place something else is sent.
        headers.remove(header::CONTENT_LENGTH);
    } else if let Some(length) = body.size_hint().exact() {
        let entry = headers.entry(header::CONTENT_LENGTH);
        entry.or_insert_with(|| length.into());
    }
    headers.entry(header::DATE).or_insert_with(date);
    let sent = respond.send_response(Response::from_parts(head, ()), is_over);
    let mut sending = sending(sent.map_err(|_| Gone)?);
    match taken_over {
        Some(taken_over) => taken_over.give(OpenStream::new(sending, receiving)),
        None if is_over => {}
        None => send_body(body, &mut sending).await?,
    }
    Ok(())
}

/// The answer to a request that its stream become another protocol's: it does where the route takes it over, and nowhere else.
fn connected(mut answer: Response) -> Response {
    let is_taken_over = answer.extensions().get::<TakenOver>().is_some();
    if !answer.status().is_success() || is_taken_over {
        return answer;
    }
    let mut refused = ApiError::MethodNotAllowed.into_response();
    let id = answer.headers_mut().remove(X_REQUEST_ID);
    refused
        .headers_mut()
        .extend(id.map(|id| (X_REQUEST_ID, id)));
    refused
}

/// Sends a body as it comes, and no faster than its client takes it in.
async fn send_body(mut body: Body, sending: &mut Sending) -> Result<(), Gone> {
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = sending.until_gone() => return Err(Gone),
        };
        let Some(frame) = frame else {
            sending.end();
            return Ok(());
        };
        // A body that breaks is broken off, so that it is not taken to be whole.
        let frame = frame.map_err(|_| Gone)?;
        if let Ok(data) = frame.into_data() {
            sending.until_room().await?;
            sending.send(data)?;
        }
    }
}

/// Now, as a header says it.
fn date() -> HeaderValue {
    let now = httpdate::fmt_http_date(Clock::system().now());
    HeaderValue::try_from(now).expect("it is ASCII")
}

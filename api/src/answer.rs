//! Answers: JSON, written into one buffer of a given capacity, and streams of server-sent events.

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::error::ApiError;

/// Answers with `body`, as axum's own JSON does, but written into one piece of memory of `room` bytes. A longer answer
/// grows.
pub fn json(body: &impl Serialize, room: usize) -> Response {
    match text(body, room) {
        Ok(text) => json_text(text),
        Err(error) => error.into_response(),
    }
}

/// The JSON text of `body`, for an answer that may be given again.
///
/// # Errors
/// None that is known: what is answered has a JSON text.
pub fn text(body: &impl Serialize, room: usize) -> Result<Bytes, ApiError> {
    let mut text = Vec::with_capacity(room);
    sonic_rs::to_writer(&mut text, body).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(text.into())
}

/// Answers with a JSON text.
pub fn json_text(text: Bytes) -> Response {
    let mut answer = Response::new(Body::from(text));
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

/// Answers with a stream of server-sent events.
pub fn events(body: Body) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // A proxy that gathers answers into large pieces would hold events back.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, body).into_response()
}

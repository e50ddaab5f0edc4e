//! JSON answers, written into one buffer of a given capacity.

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::error::ApiError;

/// Answers with `body`, as axum's own JSON does, but written into one piece of memory of `room` bytes. A longer answer
/// grows.
pub fn json(body: &impl Serialize, room: usize) -> Response {
    let mut text = Vec::with_capacity(room);
    if let Err(error) = sonic_rs::to_writer(&mut text, body) {
        return ApiError::Internal(error.into()).into_response();
    }
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], text).into_response()
}

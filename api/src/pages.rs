//! Pages: the API reference, the documents and `llms.txt`, all of them from this server and from no other host.

mod archive;
mod documents;
mod reference;

use axum::{
    Router,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};

use crate::openapi;

/// The routes of the pages and of the description that they show, which need no key and change nothing.
pub fn routes() -> Router {
    documents::routes()
        .merge(openapi::route())
        .merge(reference::routes())
}

/// A page or a part of one, which may load what `policy` says.
pub fn page(media_type: &'static str, policy: &'static str, body: impl IntoResponse) -> Response {
    let headers: [(HeaderName, HeaderValue); 4] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(policy),
        ),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
    ];
    (headers, body).into_response()
}

//! Entity tags of webhooks: the version in `ETag`, and in `If-Match` the version that a change is based on.

use axum::http::{HeaderMap, HeaderValue, header};

use super::paging;
use crate::error::ApiError;

/// The version that the caller has seen, from `If-Match`; `None` when it does not care.
pub(super) fn expected_version(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let version = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .and_then(paging::digits);
    version.map(Some).ok_or_else(|| {
        ApiError::invalid(
            "If-Match",
            "must be the ETag of an earlier answer, such as \"3\", or *",
        )
    })
}

/// The entity tag of a webhook's version.
pub(super) fn etag(version: u64) -> [(header::HeaderName, HeaderValue); 1] {
    let value = HeaderValue::from_str(&format!("\"{version}\""));
    let value = value.expect("digits between quotes are a header value");
    [(header::ETAG, value)]
}

//! Reference: Swagger UI over `openapi.json`, with its script and style sheet from this server.
//!
//! What Swagger UI leaves hard to read, without a name or out of the keyboard's reach, a style sheet and a script of our own mend.

use std::sync::LazyLock;

use axum::{
    Router,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;

use super::{archive::Archive, page};

/// What the reference may load: what this server answers, and pictures that stand in its style sheet.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

const START: &str = include_str!("reference/start.js");
const MEND: &str = include_str!("reference/mend.js");
const MEND_STYLE: &str = include_str!("reference/mend.css");

/// How long a browser may keep the script and the style sheet: they change with the version of Sluice alone.
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=3600");

static SCRIPT: LazyLock<Bytes> = LazyLock::new(|| packed("/dist/swagger-ui-bundle.js"));
static STYLE: LazyLock<Bytes> = LazyLock::new(|| packed("/dist/swagger-ui.css"));

pub fn routes() -> Router {
    Router::new()
        .route("/docs", get(async || html()))
        .route("/docs/start.js", get(async || script(START)))
        .route("/docs/mend.js", get(async || script(MEND)))
        .route(
            "/docs/mend.css",
            get(async || page(CSS, POLICY, MEND_STYLE)),
        )
        .route(
            "/docs/swagger-ui.js",
            get(async || asset(JAVASCRIPT, SCRIPT.clone())),
        )
        .route(
            "/docs/swagger-ui.css",
            get(async || asset(CSS, STYLE.clone())),
        )
}

fn html() -> Response {
    page(
        "text/html; charset=utf-8",
        POLICY,
        include_str!("reference/reference.html"),
    )
}

fn script(text: &'static str) -> Response {
    page(JAVASCRIPT, POLICY, text)
}

fn asset(media_type: &'static str, packed: Bytes) -> Response {
    let headers = [
        (header::CONTENT_ENCODING, HeaderValue::from_static("gzip")),
        (header::CACHE_CONTROL, KEPT),
    ];
    (headers, page(media_type, POLICY, packed)).into_response()
}

/// A file of Swagger UI as gzip.
///
/// # Panics
/// Never: a test finds both files in the pinned version.
fn packed(name: &str) -> Bytes {
    let archive = Archive::new(SWAGGER_UI_VENDORED).expect("an archive");
    archive.gzip(name).expect("a file of Swagger UI").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swagger_ui_is_in_its_crate() {
        assert!(SCRIPT.len() > 300_000, "{}", SCRIPT.len());
        assert!(STYLE.len() > 20_000, "{}", STYLE.len());
    }
}

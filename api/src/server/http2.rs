//! HTTP/2 (RFC 9113) without TLS, as a proxy speaks it that has ended the TLS of its clients: many requests and streams over one
//! connection.

use std::time::Duration;

use axum::http::{HeaderValue, Request, Uri, header};
use hyper::server::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// Requests and streams of a connection at a time: what the protocol recommends at least.
const MOST_AT_ONCE: u32 = 100;

/// Bytes of bodies that a connection may send before they are read, of one request and of all: the protocol's own for one, which
/// holds any body that is taken but the longest, and no multiple of it for each of a hundred.
const REQUEST_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 4 * REQUEST_WINDOW;

/// Bytes of an answer that wait for its client: of a stream whose reader stands still a dozen events, as over HTTP/1.1.
const MOST_UNSENT: usize = super::MOST_UNSENT as usize;

/// How often a connection is asked whether its other end is there, which a stream of events need not tell for as long as the
/// kernel takes them in; and how long the answer may take.
const ALIVE_EVERY: Duration = Duration::from_secs(20);
const ALIVE_WITHIN: Duration = Duration::from_secs(20);

/// How connections are served.
pub(super) fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_AT_ONCE)
        // WebSockets, each of which is a stream.
        .enable_connect_protocol()
        .initial_stream_window_size(REQUEST_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(MOST_UNSENT)
        .keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_WITHIN);
    builder
}

/// Puts a request in the form in which it comes over HTTP/1.1: the path alone, and who is asked as the header `Host`. A header
/// `Host` of its own says nothing beside it.
pub(super) fn put_in_origin_form<B>(request: &mut Request<B>) {
    let uri = request.uri();
    let asked = uri.authority();
    let host = asked.and_then(|asked| HeaderValue::from_str(asked.as_str()).ok());
    let path = uri.path_and_query().cloned().map(Uri::from);
    if let Some(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
    if let Some(path) = path {
        *request.uri_mut() = path;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The URI and the host of a request, put in the form.
    fn put(uri: &str, host: Option<&str>) -> (String, Option<String>) {
        let mut request = Request::get(uri);
        if let Some(host) = host {
            request = request.header(header::HOST, host);
        }
        let mut request = request.body(()).expect("a request");
        put_in_origin_form(&mut request);
        let host = request.headers().get(header::HOST);
        let host = host.map(|host| host.to_str().expect("ASCII").to_owned());
        (request.uri().to_string(), host)
    }

    #[test]
    fn who_is_asked_is_the_host_whatever_the_header_says() {
        let expected = (
            "/v1/quote?a=1".to_owned(),
            Some("swap.example:80".to_owned()),
        );
        let uri = "http://swap.example:80/v1/quote?a=1";
        assert_eq!(put(uri, None), expected);
        assert_eq!(put(uri, Some("localhost")), expected);
    }

    #[test]
    fn what_names_nobody_keeps_its_header() {
        let own = Some("localhost".to_owned());
        assert_eq!(
            put("/v1/pools", Some("localhost")),
            ("/v1/pools".to_owned(), own)
        );
        assert_eq!(put("/v1/pools", None), ("/v1/pools".to_owned(), None));
    }
}

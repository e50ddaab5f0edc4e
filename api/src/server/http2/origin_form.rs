//! Origin form (RFC 9112, 3.2.1): requests of HTTP/2 as routes know them of HTTP/1.1.

use axum::http::{HeaderValue, Method, Request, Uri, header};
use h2::ext::Protocol;

/// Puts a request in the form in which it comes over HTTP/1.1: the path alone, and who is asked as the header `Host`. A header
/// `Host` of its own says nothing beside it. One whose stream is to become another protocol's asks with the method with which it would
/// ask for an upgrade, and keeps the [`Protocol`].
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
    if request.extensions().get::<Protocol>().is_some() {
        *request.method_mut() = Method::GET;
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

    #[test]
    fn what_is_to_become_another_protocols_asks_as_for_an_upgrade() {
        for (protocol, method) in [
            (Some("websocket"), Method::GET),
            (Some("connect-udp"), Method::GET),
            (None, Method::CONNECT),
        ] {
            let mut request = Request::connect("http://swap.example/v1/quote/stream");
            if let Some(protocol) = protocol {
                request = request.extension(Protocol::from_static(protocol));
            }
            let mut request = request.body(()).expect("a request");
            put_in_origin_form(&mut request);
            assert_eq!(request.method(), method, "{protocol:?}");
            assert_eq!(request.uri(), "/v1/quote/stream");
        }
    }
}

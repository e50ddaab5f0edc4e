//! Origin form (RFC 9112, 3.2.1): requests of HTTP/2 as routes know them of HTTP/1.1.

use axum::http::{HeaderValue, Request, Uri, header};

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

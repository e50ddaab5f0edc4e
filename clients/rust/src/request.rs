//! Request: what an operation sends, put together from its arguments (pure).

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::error::Error;

/// Header under which a repeated call is answered as the first was.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Header under which a change is refused where another came before it.
const IF_MATCH: &str = "if-match";

/// A request, or the first argument that cannot be sent.
#[derive(Debug)]
pub struct Request {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Option<Vec<u8>>,
    segments: Vec<String>,
    query: Vec<(String, String)>,
    repeatable: bool,
    fault: Option<Error>,
}

impl Request {
    /// A request to a path, of which each part in braces is an argument.
    pub fn new(method: Method, path: &str, repeatable: bool) -> Self {
        let segments = path.split('/').filter(|part| !part.is_empty());
        Self {
            method,
            headers: HeaderMap::new(),
            body: None,
            segments: segments.map(str::to_owned).collect(),
            query: Vec::new(),
            repeatable,
            fault: None,
        }
    }

    /// Puts an argument into the path.
    pub fn path(mut self, name: &str, value: &str) -> Self {
        // Such a part would name another path, whatever is done to its letters.
        if matches!(value, "" | "." | "..") {
            return self.refuse(name, "it is empty or dots alone");
        }
        let place = format!("{{{name}}}");
        for segment in self.segments.iter_mut().filter(|one| **one == place) {
            value.clone_into(segment);
        }
        self
    }

    /// Adds the members of an object that are there.
    pub fn query(mut self, query: &impl Serialize) -> Self {
        let Ok(Value::Object(members)) = serde_json::to_value(query) else {
            return self.refuse("query", "it is no object");
        };
        for (name, value) in members {
            let text = match value {
                Value::Null => continue,
                Value::String(text) => text,
                other => other.to_string(),
            };
            self.query.push((name, text));
        }
        self
    }

    /// Sends this body.
    pub fn body(mut self, body: Option<&impl Serialize>) -> Self {
        match body.map(serde_json::to_vec).transpose() {
            Ok(body) => {
                self.body = body;
                self
            }
            Err(_) => self.refuse("body", "it cannot be written as JSON"),
        }
    }

    /// Adds a header that is there.
    pub fn header(mut self, name: &str, value: Option<&str>) -> Self {
        let Some(value) = value else { return self };
        let name_of_header = name.parse::<HeaderName>();
        let (Ok(header), Ok(value)) = (name_of_header, HeaderValue::from_str(value)) else {
            return self.refuse(name, "it is no value of a header");
        };
        self.headers.insert(header, value);
        self
    }

    /// The request, unless an argument cannot be sent.
    pub fn finish(mut self) -> Result<Self, Error> {
        self.fault.take().map_or(Ok(self), Err)
    }

    /// Whether it may be sent again: it changes nothing, or the same again.
    pub fn is_repeatable(&self) -> bool {
        // Repeated under the version that it replaced itself, a change would be refused.
        if self.headers.contains_key(IF_MATCH) {
            return false;
        }
        self.repeatable || self.headers.contains_key(IDEMPOTENCY_KEY)
    }

    /// Where it goes.
    pub fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        // A base that cannot have a path was refused when the client was made.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&self.segments);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }

    fn refuse(mut self, name: &str, reason: &'static str) -> Self {
        let name = name.to_owned();
        self.fault.get_or_insert(Error::Argument { name, reason });
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request() -> Request {
        Request::new(Method::POST, "/api/webhooks/{id}/skip", false)
    }

    #[test]
    fn arguments_cannot_leave_their_place() {
        let base = Url::parse("https://sluice.test/behind/").expect("a URL");
        let sent = request().path("id", "a/../b?c#d").finish().expect("sent");
        let url = sent.url(&base).to_string();
        assert_eq!(
            url,
            "https://sluice.test/behind/api/webhooks/a%2F..%2Fb%3Fc%23d/skip"
        );
        for value in ["", ".", ".."] {
            let refused = request().path("id", value).finish().expect_err("refused");
            assert_eq!(
                refused.to_string(),
                "id cannot be sent: it is empty or dots alone"
            );
        }
        let refused = request().header("if-match", Some("a\nb")).finish();
        assert!(refused.is_err(), "a header in a header");
    }

    #[test]
    fn a_query_has_what_is_there() {
        let base = Url::parse("http://127.0.0.1:8787").expect("a URL");
        let query = json!({"amount": u64::MAX, "pool": null, "swapMode": "ExactOut", "a": "b&c"});
        let sent = Request::new(Method::GET, "/v1/quote", true).query(&query);
        let url = sent.finish().expect("sent").url(&base).to_string();
        let expected =
            "http://127.0.0.1:8787/v1/quote?a=b%26c&amount=18446744073709551615&swapMode=ExactOut";
        assert_eq!(url, expected);
    }

    #[test]
    fn a_change_is_repeated_only_under_a_key() {
        assert!(!request().is_repeatable());
        assert!(
            request()
                .header("Idempotency-Key", Some("k"))
                .is_repeatable()
        );
        let put = Request::new(Method::PUT, "/", true);
        assert!(put.is_repeatable());
        assert!(!put.header("If-Match", Some("\"1\"")).is_repeatable());
    }
}

//! Origin: which web pages may open a WebSocket, by the setting that says which may call the public routes (pure).
//!
//! A browser lets every page open a WebSocket to every server, and only says of which origin the page is.

use axum::http::{HeaderMap, HeaderValue, header};
use sluice_config::{CorsOrigins, CorsSwitch};

use crate::{error::ApiError, extract::echoed};

/// Checks who asks; what is no page names no origin.
pub(super) fn check(origins: &CorsOrigins, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let is_allowed = match origins {
        CorsOrigins::All(CorsSwitch::Any) => true,
        CorsOrigins::All(CorsSwitch::Off) => false,
        CorsOrigins::These(listed) => listed.iter().any(|each| origin == each),
    };
    if is_allowed || is_own(origin, headers) {
        return Ok(());
    }
    Err(ApiError::OriginRefused {
        origin: echoed(&String::from_utf8_lossy(origin.as_bytes())),
    })
}

/// Whether the page is of the host that is asked: of such no browser asks for leave to call.
fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let origin = origin.to_str().unwrap_or_default();
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let of_page = origin.split_once("://").map(|(_, host)| host);
    of_page.is_some() && of_page == host
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code with which a page of this origin is refused by a server that is called `swap.example:8080`.
    fn refusal(origins: &CorsOrigins, origin: Option<&'static str>) -> Option<&'static str> {
        let host = HeaderValue::from_static("swap.example:8080");
        let origin = origin.map(|origin| (header::ORIGIN, HeaderValue::from_static(origin)));
        let headers = std::iter::once((header::HOST, host)).chain(origin);
        let checked = check(origins, &headers.collect());
        checked.err().map(|error| error.code())
    }

    #[test]
    fn a_page_opens_one_where_it_may_call_and_what_is_no_page_everywhere() {
        let listed = CorsOrigins::These(vec!["https://shop.example".to_owned()]);
        let any = CorsOrigins::All(CorsSwitch::Any);
        let off = CorsOrigins::All(CorsSwitch::Off);
        let own = Some("http://swap.example:8080");
        for origins in [&listed, &any, &off] {
            assert_eq!(refusal(origins, None), None, "{origins:?}");
            assert_eq!(refusal(origins, own), None, "{origins:?}");
        }
        assert_eq!(refusal(&any, Some("https://other.example")), None);
        assert_eq!(refusal(&listed, Some("https://shop.example")), None);
        for other in [
            "https://other.example",
            "http://shop.example",
            "https://shop.example:8443",
            "null",
            "http://swap.example",
            "",
        ] {
            for origins in [&listed, &off] {
                let refused = refusal(origins, Some(other));
                assert_eq!(refused, Some("origin_refused"), "{other} {origins:?}");
            }
        }
    }
}

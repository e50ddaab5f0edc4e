//! CORS of the public routes: which web pages may call them from a browser.

use serde::Deserialize;
use url::{Origin, Url};

use crate::ConfigError;

/// Key of the origins, for errors.
const KEY: &str = "api.cors-origins";

/// The web pages, by origin, that browsers let call `/v1/*`. The webhook routes are never among what they may call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum CorsOrigins {
    /// All or none.
    All(CorsSwitch),
    /// These: scheme, host and port, as browsers write them.
    These(Vec<String>),
}

/// All pages or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CorsSwitch {
    /// Every page: what the routes answer is public.
    Any,
    /// No page of another origin.
    Off,
}

impl Default for CorsOrigins {
    fn default() -> Self {
        Self::All(CorsSwitch::Any)
    }
}

impl CorsOrigins {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let Self::These(origins) = self else {
            return Ok(());
        };
        let faulty = origins.iter().find(|origin| !is_origin(origin));
        faulty.map_or(Ok(()), |origin| {
            Err(ConfigError::Range {
                key: KEY,
                value: origin.clone(),
                rule: "\"any\", \"off\" or a list of origins such as \"https://example.com\", without a path",
            })
        })
    }
}

/// Whether a browser would write it so: another spelling would never match.
fn is_origin(text: &str) -> bool {
    let origin = Url::parse(text).map(|url| url.origin());
    origin.is_ok_and(|origin| {
        matches!(origin, Origin::Tuple(..)) && origin.ascii_serialization() == text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        for origin in ["https://example.com", "http://localhost:3000"] {
            assert!(is_origin(origin), "{origin}");
        }
        for other in [
            "example.com",
            "https://example.com/",
            "https://example.com:443",
            "https://Example.com",
            "https://example.com/swap",
            "null",
            "*",
        ] {
            assert!(!is_origin(other), "{other}");
        }
    }
}

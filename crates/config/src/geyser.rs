//! Geyser settings: the Yellowstone servers, and what the market asks them for.

use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use crate::{ConfigError, require_scheme};

/// Most servers. Each of them sends everything, and three are enough to lose two.
const MAX_ENDPOINTS: usize = 8;

/// Yellowstone gRPC access.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GeyserConfig {
    #[serde(default)]
    endpoints: Vec<GeyserEndpoint>,
    /// The only server, as it was named before there could be several.
    endpoint: Option<Url>,
    x_token: Option<SecretString>,
    #[serde(default)]
    fallback: Vec<GeyserFallback>,
    /// Whether all accounts that are closed are subscribed to, which is how the market notices closed pools, and the
    /// indexer that an account of a watched program is closed. Some services refuse a filter that names neither an account nor an owner.
    #[serde(default = "default_watch_closed_accounts")]
    pub watch_closed_accounts: bool,
    /// Whether the indexer finds out, when it starts, how many addresses the servers take in one request.
    #[serde(default = "default_probe_limits")]
    pub probe_limits: bool,
}

/// A Yellowstone-compatible `geyser.Geyser` service.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GeyserEndpoint {
    /// Its address.
    pub url: Url,
    /// Value of the `x-token` header, for providers that ask for one.
    pub x_token: Option<SecretString>,
}

/// A further service, as it was named before.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct GeyserFallback {
    endpoint: Url,
    x_token: Option<SecretString>,
}

const fn default_probe_limits() -> bool {
    true
}

const fn default_watch_closed_accounts() -> bool {
    true
}

impl GeyserConfig {
    /// The servers, at least one: all are listened to at once.
    #[must_use]
    pub fn endpoints(&self) -> Vec<GeyserEndpoint> {
        let first = self.endpoint.iter().map(|url| GeyserEndpoint {
            url: url.clone(),
            x_token: self.x_token.clone(),
        });
        let others = self.fallback.iter().map(|fallback| GeyserEndpoint {
            url: fallback.endpoint.clone(),
            x_token: fallback.x_token.clone(),
        });
        let old = first.chain(others);
        self.endpoints.iter().cloned().chain(old).collect()
    }

    /// What is said in an old way.
    pub(crate) fn deprecations(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        if self.endpoint.is_some() || self.x_token.is_some() {
            found.push(
                "geyser.endpoint and geyser.x-token are read for one more release: write [[geyser.endpoints]] with \
                 `url` and `x-token` instead",
            );
        }
        if !self.fallback.is_empty() {
            found.push(
                "geyser.fallback is read for one more release, and listened to all the time: write [[geyser.endpoints]] \
                 with `url` and `x-token` instead",
            );
        }
        found
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let refused = |value: String, rule| {
            Err(ConfigError::Range {
                key: "geyser.endpoints",
                value,
                rule,
            })
        };
        let is_old = self.endpoint.is_some() || self.x_token.is_some() || !self.fallback.is_empty();
        if is_old && !self.endpoints.is_empty() {
            let rule = "the only list of servers: move geyser.endpoint and geyser.fallback into it";
            return refused("given beside the old keys".to_owned(), rule);
        }
        if is_old && self.endpoint.is_none() {
            let rule = "given, with a `url` and an `x-token` for each server";
            return refused("empty, with geyser.endpoint missing".to_owned(), rule);
        }
        let endpoints = self.endpoints();
        if endpoints.is_empty() || endpoints.len() > MAX_ENDPOINTS {
            let rule = "1 to 8 servers, each a [[geyser.endpoints]] with a `url`";
            return refused(format!("{} servers", endpoints.len()), rule);
        }
        for endpoint in &endpoints {
            require_scheme("geyser.endpoints.url", &endpoint.url)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn parse(text: &str) -> Result<GeyserConfig, String> {
        let config: GeyserConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        config.check().map_err(|error| error.to_string())?;
        Ok(config)
    }

    fn addresses(config: &GeyserConfig) -> Vec<(String, Option<String>)> {
        let endpoints = config.endpoints().into_iter();
        endpoints
            .map(|endpoint| {
                let token = endpoint.x_token.as_ref();
                let token = token.map(|token| token.expose_secret().to_owned());
                (endpoint.url.to_string(), token)
            })
            .collect()
    }

    #[test]
    fn servers_of_the_old_keys_are_those_of_the_new_ones_with_a_warning() {
        let new = parse(
            "[[endpoints]]\nurl = \"http://a:1\"\nx-token = \"t\"\n[[endpoints]]\nurl = \"http://b:2\"",
        )
        .expect("valid");
        let old = parse(
            "endpoint = \"http://a:1\"\nx-token = \"t\"\n[[fallback]]\nendpoint = \"http://b:2\"",
        )
        .expect("valid for one release");
        let expected = [
            ("http://a:1/".to_owned(), Some("t".to_owned())),
            ("http://b:2/".to_owned(), None),
        ];
        assert_eq!(addresses(&new), expected);
        assert_eq!(addresses(&old), expected);
        assert!(new.deprecations().is_empty());
        let warned = old.deprecations().join(" ");
        assert!(warned.contains("geyser.endpoint "), "{warned}");
        assert!(warned.contains("geyser.fallback "), "{warned}");
    }

    #[test]
    fn a_list_without_servers_or_beside_the_old_keys_is_refused_with_the_remedy() {
        let many = "[[endpoints]]\nurl = \"http://a:1\"\n".repeat(MAX_ENDPOINTS + 1);
        for (text, words) in [
            ("", "1 to 8 servers"),
            (&many, "1 to 8 servers"),
            (
                "endpoint = \"http://a:1\"\n[[endpoints]]\nurl = \"http://b:2\"",
                "move geyser.endpoint",
            ),
            (
                "[[fallback]]\nendpoint = \"http://b:2\"",
                "geyser.endpoint missing",
            ),
            ("x-token = \"t\"", "geyser.endpoint missing"),
            ("[[endpoints]]\nurl = \"ftp://b:2\"", "http or https"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("geyser.endpoints"), "{error}");
            assert!(error.contains(words), "{error}");
        }
    }
}

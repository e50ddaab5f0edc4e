//! Limits of clients: what one address may ask of the API, and how long its connections may take.

use std::{
    net::IpAddr,
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, de::Error};

use crate::ConfigError;

/// Longest deadline of a connection: what takes longer holds its place for nobody's use.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// What a client, by its address, may ask of the API.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ClientLimitsConfig {
    /// Requests per minute in the long run.
    pub requests_per_minute: NonZeroU32,
    /// Requests at once after a pause.
    pub requests_burst: NonZeroU32,
    /// Of these, the ones that ask the RPC node, per minute in the long run.
    pub node_requests_per_minute: NonZeroU32,
    /// Of these, at once after a pause.
    pub node_requests_burst: NonZeroU32,
    /// Whether clients on this machine are limited too.
    pub loopback: bool,
    /// Proxies, by address or network, that name the client in a header.
    #[serde(deserialize_with = "networks")]
    pub trusted_proxies: Vec<IpNet>,
    /// The header in which they do.
    pub client_header: String,
    /// Open connections of all clients. By itself more than the 10,000 readers of quotes that a processor serves: where strangers
    /// hold as many, they have places too, and do not take the server's time by losing them to each other.
    pub connections: NonZeroUsize,
    /// Open connections of one client.
    pub connections_per_client: NonZeroUsize,
    /// Open streams of all clients.
    pub streams: NonZeroUsize,
    /// Open streams of one client.
    pub streams_per_client: NonZeroUsize,
    /// Time for the head of a request to arrive, from the opening of the connection or from the answer before it,
    /// milliseconds.
    pub head_timeout_ms: u64,
    /// Time in which a client must take in some bytes of an answer, milliseconds.
    pub write_timeout_ms: u64,
}

impl Default for ClientLimitsConfig {
    fn default() -> Self {
        Self {
            requests_per_minute: const { NonZeroU32::new(1_200).expect("not zero") },
            requests_burst: const { NonZeroU32::new(200).expect("not zero") },
            node_requests_per_minute: const { NonZeroU32::new(300).expect("not zero") },
            node_requests_burst: const { NonZeroU32::new(50).expect("not zero") },
            loopback: false,
            trusted_proxies: Vec::new(),
            client_header: "x-forwarded-for".to_owned(),
            connections: const { NonZeroUsize::new(16_384).expect("not zero") },
            connections_per_client: const { NonZeroUsize::new(256).expect("not zero") },
            streams: const { NonZeroUsize::new(12_288).expect("not zero") },
            streams_per_client: const { NonZeroUsize::new(64).expect("not zero") },
            head_timeout_ms: 30_000,
            write_timeout_ms: 30_000,
        }
    }
}

impl ClientLimitsConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (key, value) in [
            ("api.clients.head-timeout-ms", self.head_timeout_ms),
            ("api.clients.write-timeout-ms", self.write_timeout_ms),
        ] {
            if !(1..=MAX_TIMEOUT_MS).contains(&value) {
                return Err(ConfigError::Range {
                    key,
                    value: value.to_string(),
                    rule: "1 to 600000",
                });
            }
        }
        let name = self.client_header.as_bytes();
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        if name.is_empty() || !name.iter().all(is_letter) {
            return Err(ConfigError::Range {
                key: "api.clients.client-header",
                value: self.client_header.clone(),
                rule: "the name of a header, such as \"x-forwarded-for\"",
            });
        }
        Ok(())
    }

    /// Time for the head of a request.
    #[must_use]
    pub const fn head_timeout(&self) -> Duration {
        Duration::from_millis(self.head_timeout_ms)
    }

    /// Time to take in some bytes of an answer.
    #[must_use]
    pub const fn write_timeout(&self) -> Duration {
        Duration::from_millis(self.write_timeout_ms)
    }
}

/// Networks, of which an address alone is one of its own.
fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let network = |text: &String| {
        let address = text.parse::<IpAddr>().map(IpNet::from);
        address.or_else(|_| text.parse::<IpNet>()).map_err(|_| {
            D::Error::custom(format!(
                "{text} is no address and no network such as 10.0.0.0/8"
            ))
        })
    };
    texts.iter().map(network).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_addresses_or_networks() {
        let parsed: ClientLimitsConfig =
            toml::from_str("trusted-proxies = [\"10.0.0.7\", \"172.16.0.0/12\", \"::1\"]")
                .expect("it is right");
        let proxies: Vec<String> = parsed
            .trusted_proxies
            .iter()
            .map(IpNet::to_string)
            .collect();
        assert_eq!(proxies, ["10.0.0.7/32", "172.16.0.0/12", "::1/128"]);
        let wrong = toml::from_str::<ClientLimitsConfig>("trusted-proxies = [\"proxy.example\"]");
        assert!(
            wrong
                .expect_err("a name")
                .to_string()
                .contains("proxy.example")
        );
    }

    #[test]
    fn a_deadline_is_neither_nothing_nor_endless() {
        let with = |head_timeout_ms| ClientLimitsConfig {
            head_timeout_ms,
            ..ClientLimitsConfig::default()
        };
        assert!(with(0).check().is_err());
        assert!(with(600_001).check().is_err());
        assert!(ClientLimitsConfig::default().check().is_ok());
    }
}

//! Configuration file (JSON5) that the validator names when it loads the plugin.

mod filter_limits;

pub use filter_limits::{
    AccountLimits, AddressList, BlockLimits, CountLimit, FilterLimits, TransactionLimits,
};

use std::{net::SocketAddr, path::Path, path::PathBuf, time::Duration};

use serde::Deserialize;
use thiserror::Error;

/// Recent slots kept for `from_slot` unless configured: Yellowstone's own default. A number of slots, not a time: half a minute
/// where a slot lasts 200 ms.
pub const DEFAULT_REPLAY_STORED_SLOTS: usize = 150;

/// Longest filter name in bytes unless configured: Yellowstone's own default. Names travel with every update.
pub const DEFAULT_FILTER_NAME_BYTES: usize = 128;

/// Largest request in bytes unless configured: Yellowstone's own default, some 91,000 addresses.
pub const DEFAULT_REQUEST_BYTES: usize = 4 << 20;

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the plugin configuration {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not JSON5, or a key is missing, unknown or of the wrong type.
    #[error("invalid plugin configuration: {0}")]
    Parse(#[from] json5::Error),
    /// A limit that must let at least something through is zero.
    #[error("invalid plugin configuration: limits.{0} must be at least 1")]
    ZeroLimit(&'static str),
    /// The token cannot be matched against a gRPC header.
    #[error("invalid plugin configuration: grpc.x_token must be non-empty printable ASCII")]
    Token,
}

/// The plugin's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The shared library. Read by the validator, not by the plugin.
    pub libpath: PathBuf,
    /// A name for the validator's plugin list. Read by the validator, not by the plugin.
    pub name: Option<String>,
    /// Where and to whom to serve.
    pub grpc: GrpcConfig,
    /// How many recent slots `from_slot` can reach; 0 turns replay off.
    #[serde(default = "default_replay_stored_slots")]
    pub replay_stored_slots: usize,
    /// Milliseconds from a request with `from_slot` to the moment whose frozen blocks answer it. Live updates gather
    /// meanwhile, so a block that is frozen in this time comes twice: in the replay and live.
    #[serde(default)]
    pub replay_delay_ms: u64,
    /// How the plugin falls behind its validator; not at all unless configured.
    pub lag: Option<Lag>,
    /// Bounds on memory.
    #[serde(default)]
    pub limits: Limits,
}

/// The gRPC listener.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrpcConfig {
    /// IP address and port to listen on; port 0 takes a free one.
    pub address: SocketAddr,
    /// If set, every call must carry it in the `x-token` header.
    pub x_token: Option<String>,
    /// What a subscription may ask for.
    #[serde(default)]
    pub filter_limits: FilterLimits,
    /// Longest filter name in bytes.
    #[serde(default = "default_filter_name_bytes")]
    pub filter_name_size_limit: usize,
    /// Largest request in bytes. A larger one closes its stream without a status, as Yellowstone servers do.
    #[serde(default = "default_request_bytes")]
    pub max_decoding_message_size: usize,
}

/// Times in which the plugin stands still, as one on a machine that is short of CPU: the validator goes on, and what it reports waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lag {
    /// Milliseconds from the end of one such time to the beginning of the next.
    pub every_ms: u64,
    /// How long each lasts, milliseconds.
    pub for_ms: u64,
}

/// Bounds on every queue and store of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Messages waiting between the validator's callbacks and the hub. Mainnet writes about 6,000
    /// accounts a slot, so the default holds several slots of a busy chain.
    pub intake_messages: usize,
    /// Bytes waiting there. Accounts reach 10 MiB each, so a count alone would not bound memory.
    pub intake_bytes: usize,
    /// Batches a subscriber's task may fall behind the hub. It only does so when starved of CPU,
    /// because it never waits for its subscriber outside of a replay.
    pub stream_batches: usize,
    /// Updates waiting for one subscriber to read them. The confirmed and finalized streams emit
    /// a slot at once, so it must hold the largest slot: about 8,000 updates on mainnet.
    pub client_messages: usize,
    /// Bytes waiting for one subscriber.
    pub client_bytes: usize,
    /// Bytes of finalized slots kept for replay; the oldest go first.
    pub replay_bytes: usize,
    /// Slots held back while the chain does not finalize. Finality is normally 32 slots behind, so
    /// the default is reached only by a chain that is stuck.
    pub unfinalized_slots: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            intake_messages: 65_536,
            intake_bytes: 512 << 20,
            stream_batches: 65_536,
            client_messages: 65_536,
            client_bytes: 128 << 20,
            replay_bytes: 512 << 20,
            unfinalized_slots: 1_024,
        }
    }
}

fn default_replay_stored_slots() -> usize {
    DEFAULT_REPLAY_STORED_SLOTS
}

fn default_filter_name_bytes() -> usize {
    DEFAULT_FILTER_NAME_BYTES
}

fn default_request_bytes() -> usize {
    DEFAULT_REQUEST_BYTES
}

impl Lag {
    /// Time between two of them.
    pub fn every(self) -> Duration {
        Duration::from_millis(self.every_ms)
    }

    /// Length of each.
    pub fn length(self) -> Duration {
        Duration::from_millis(self.for_ms)
    }
}

impl Config {
    /// Time from a request with `from_slot` to the moment whose frozen blocks answer it.
    pub fn replay_delay(&self) -> Duration {
        Duration::from_millis(self.replay_delay_ms)
    }

    /// Reads and checks a configuration file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] when it cannot be read or is not valid.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text)
    }

    /// Parses and checks the text of a configuration file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] when it is not valid.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = json5::from_str(text)?;
        config.limits.check()?;
        if let Some(token) = &config.grpc.x_token
            && (token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(ConfigError::Token);
        }
        Ok(config)
    }
}

impl Limits {
    fn check(&self) -> Result<(), ConfigError> {
        let named = [
            ("intake_messages", self.intake_messages),
            ("intake_bytes", self.intake_bytes),
            ("stream_batches", self.stream_batches),
            ("client_messages", self.client_messages),
            ("client_bytes", self.client_bytes),
            ("replay_bytes", self.replay_bytes),
            ("unfinalized_slots", self.unfinalized_slots),
        ];
        match named.into_iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(ConfigError::ZeroLimit(name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_configuration_gets_the_defaults() {
        let config =
            Config::parse(r#"{libpath: "lib.so", grpc: {address: "127.0.0.1:10000"}} // JSON5"#)
                .unwrap();
        assert_eq!(config.replay_stored_slots, DEFAULT_REPLAY_STORED_SLOTS);
        assert_eq!(config.limits, Limits::default());
        assert_eq!(config.grpc.address.port(), 10_000);
        assert_eq!(config.grpc.x_token, None);
        assert_eq!(config.lag, None);
    }

    #[test]
    fn the_sample_is_valid_and_strict() {
        let sample = include_str!("../config.json5");
        let filled = sample
            .replace("{{libpath}}", "/lib.so")
            .replace("{{address}}", "127.0.0.1:10000");
        let config = Config::parse(&filled).unwrap();
        let limits = &config.grpc.filter_limits;
        assert_eq!((limits.slots.max, limits.blocks_meta.max), (1, 1));
        assert!(!limits.accounts.account_reject.0.is_empty());
        assert!(!limits.accounts.owner_reject.0.is_empty());
        assert!(!limits.transactions.any && !limits.transactions_status.any);
        assert_eq!(limits.transactions, limits.transactions_status);
        assert!(config.replay_delay() > Duration::ZERO);
        assert_eq!(config.lag, None);
        assert_eq!(config.replay_stored_slots, DEFAULT_REPLAY_STORED_SLOTS);
    }

    #[test]
    fn one_limit_can_be_set_alone() {
        let config = Config::parse(
            r#"{"libpath": "l", "grpc": {"address": "[::1]:0", "x_token": "t"},
                "replay_stored_slots": 400, "limits": {"client_messages": 8}}"#,
        )
        .unwrap();
        assert_eq!(config.limits.client_messages, 8);
        assert_eq!(
            config.limits.intake_messages,
            Limits::default().intake_messages
        );
        assert_eq!(config.replay_stored_slots, 400);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Config::parse(text).unwrap_err().to_string();
        let unknown = error(r#"{libpath: "l", grpc: {address: "127.0.0.1:1", adress: 1}}"#);
        assert!(unknown.contains("adress"), "{unknown}");
        let missing = error(r#"{libpath: "l"}"#);
        assert!(missing.contains("grpc"), "{missing}");
        let zero =
            error(r#"{libpath: "l", grpc: {address: "127.0.0.1:1"}, limits: {client_bytes: 0}}"#);
        assert!(zero.contains("limits.client_bytes"), "{zero}");
        let token = error(r#"{libpath: "l", grpc: {address: "127.0.0.1:1", x_token: "a b"}}"#);
        assert!(token.contains("x_token"), "{token}");
    }
}

//! Typed configuration: the file `sluice.toml` of every Sluice process, and environment variables.
//!
//! One file serves the API, the indexer and both in one process, so that they cannot disagree about
//! the chain they look at or the database they share. Every key is explained in
//! `sluice.example.toml`, which a test loads; an unknown key is an error, because a misspelt key that
//! is silently ignored is worse than no key.

mod bootstrap;
mod client_limits;
mod cors;
mod environment;
mod freshness;
mod geyser;
mod indexer;
mod telemetry;
mod webhooks;

use std::{
    fs, io,
    net::SocketAddr,
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use thiserror::Error;
use url::{Host, Url};

pub use self::bootstrap::BootstrapConfig;
pub use self::client_limits::ClientLimitsConfig;
pub use self::cors::{CorsOrigins, CorsSwitch};
pub use self::environment::EnvironmentError;
use self::environment::Override;
pub use self::freshness::FreshnessConfig;
pub use self::geyser::{GeyserConfig, GeyserEndpoint};
pub use self::indexer::IndexerConfig;
pub use self::telemetry::TelemetryConfig;
pub use self::webhooks::{
    MAX_DELIVERY_TIMEOUT_SECS, MAX_KEYS_PER_WEBHOOK, MAX_RETRY_PAUSE_SECS, MAX_RETRY_PAUSES,
    MAX_SECRET_OVERLAP_HOURS, WebhooksConfig,
};

/// Most nodes besides `chain.rpc-url` to which signed transactions are sent: each gets every transaction, again and again.
const MAX_SEND_URLS: usize = 7;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Where the chain is asked.
    pub chain: ChainConfig,
    /// Where the chain is listened to.
    pub geyser: GeyserConfig,
    /// How the market reads all pools when it starts.
    #[serde(default)]
    pub bootstrap: BootstrapConfig,
    /// How far behind the present the market may be and still answer.
    #[serde(default)]
    pub freshness: FreshnessConfig,
    /// Where webhooks, events and deliveries are kept.
    pub store: StoreConfig,
    /// The REST API.
    #[serde(default)]
    pub api: ApiConfig,
    /// The indexer process.
    #[serde(default)]
    pub indexer: IndexerConfig,
    /// Rules for webhook delivery.
    #[serde(default)]
    pub webhooks: WebhooksConfig,
    /// Where traces are sent.
    #[serde(default)]
    pub telemetry: TelemetryConfig,
}

/// JSON-RPC access.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChainConfig {
    /// JSON-RPC endpoint of the cluster. May carry a key, so it is never logged whole.
    pub rpc_url: Url,
    /// Further nodes to which signed transactions are sent. May carry keys, as `rpc_url`.
    #[serde(default)]
    pub send_urls: Vec<Url>,
    /// Deadline of one RPC call, milliseconds.
    #[serde(default = "default_rpc_timeout_ms")]
    pub rpc_timeout_ms: u64,
    /// The program at the exchange's address, which decides how many compute units a swap may use.
    #[serde(default)]
    pub exchange: Exchange,
    /// Address of the exchange's program, from which its others follow; mainnet's where it is not named.
    pub exchange_program: Option<String>,
    /// Address of the lookup table that transactions of version 0 use, if there is one.
    pub lookup_table: Option<String>,
    /// Whether the cluster's token program has `unwrapLamports`.
    #[serde(default = "default_unwrap_lamports")]
    pub unwrap_lamports: bool,
}

/// The program that runs at the exchange's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// Raydium's own.
    #[default]
    Raydium,
    /// The stand-in of the localnet, which is cheaper to run.
    StandIn,
}

impl ChainConfig {
    /// Deadline of one RPC call.
    #[must_use]
    pub const fn rpc_timeout(&self) -> Duration {
        Duration::from_millis(self.rpc_timeout_ms)
    }

    fn check(&self) -> Result<(), ConfigError> {
        require_scheme("chain.rpc-url", &self.rpc_url)?;
        for url in &self.send_urls {
            require_scheme("chain.send-urls", url)?;
        }
        if self.send_urls.len() > MAX_SEND_URLS {
            return Err(ConfigError::Range {
                key: "chain.send-urls",
                value: format!("a list of {}", self.send_urls.len()),
                rule: "at most 7 nodes; chain.rpc-url is one besides",
            });
        }
        if self.rpc_timeout_ms == 0 {
            return Err(ConfigError::Range {
                key: "chain.rpc-timeout-ms",
                value: "0".to_owned(),
                rule: "at least 1",
            });
        }
        Ok(())
    }
}

/// The database: one of the two.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StoreConfig {
    /// SQLite database file; created when absent, its folder too.
    path: Option<PathBuf>,
    /// PostgreSQL database, `postgres://user:password@host/database`.
    url: Option<SecretString>,
    /// Key under which secrets and headers of webhooks are kept: 32 bytes in base64. Without one they are kept in plaintext.
    encryption_key: Option<SecretString>,
    /// The key before it, while something is still encrypted under that one.
    previous_encryption_key: Option<SecretString>,
}

/// Which database the configuration names.
#[derive(Clone, Copy, Debug)]
pub enum Database<'a> {
    /// An SQLite file.
    File(&'a Path),
    /// The URL of a PostgreSQL database.
    Server(&'a SecretString),
}

impl StoreConfig {
    /// The database that is named; `None` when none is, or both.
    fn named(&self) -> Option<Database<'_>> {
        match (&self.path, &self.url) {
            (Some(path), None) => Some(Database::File(path)),
            (None, Some(url)) => Some(Database::Server(url)),
            _ => None,
        }
    }

    /// The key under which secrets and headers of webhooks are kept.
    #[must_use]
    pub fn encryption_key(&self) -> Option<&str> {
        self.encryption_key
            .as_ref()
            .map(ExposeSecret::expose_secret)
    }

    /// The key before it, which is still read.
    #[must_use]
    pub fn previous_encryption_key(&self) -> Option<&str> {
        let key = self.previous_encryption_key.as_ref();
        key.map(ExposeSecret::expose_secret)
    }

    /// The database.
    ///
    /// # Panics
    /// Never: [`Config::parse`] refuses a file that does not name exactly one, and nothing else makes a
    /// configuration.
    #[must_use]
    pub fn database(&self) -> Database<'_> {
        self.named()
            .expect("a configuration that was parsed names one database")
    }
}

/// The REST API.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ApiConfig {
    /// Address the API listens on.
    pub listen: SocketAddr,
    /// Whether programs of Sluice's own user on this machine manage webhooks without an API key while none was ever made.
    pub keyless: bool,
    /// Requests about webhooks that one API key may make per minute in the long run.
    pub rate_limit_per_minute: NonZeroU32,
    /// Requests that it may make at once after a pause.
    pub rate_limit_burst: NonZeroU32,
    /// Web pages that may call the public routes from a browser.
    pub cors_origins: CorsOrigins,
    /// Whether `/metrics` is answered to requests from other machines.
    pub metrics_for_all: bool,
    /// Key pair file of a localnet, with which pages of the console sign.
    pub demo_wallet: Option<PathBuf>,
    /// What one client may ask for.
    pub clients: ClientLimitsConfig,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8787)),
            keyless: false,
            rate_limit_per_minute: const { NonZeroU32::new(600).expect("not zero") },
            rate_limit_burst: const { NonZeroU32::new(100).expect("not zero") },
            cors_origins: CorsOrigins::default(),
            metrics_for_all: false,
            demo_wallet: None,
            clients: ClientLimitsConfig::default(),
        }
    }
}

const fn default_unwrap_lamports() -> bool {
    true
}

const fn default_rpc_timeout_ms() -> u64 {
    10_000
}

/// Why a configuration was refused.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read the configuration file {path}: {source}")]
    Read {
        /// File that was asked for.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The text is not TOML, has an unknown key, or a value of the wrong type. The message names line
    /// and key but not the value, which may be a secret.
    #[error("{path}: {message}; sluice.example.toml explains every key")]
    Parse {
        /// File or label the text came from.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
    /// A variable of the environment is no setting, or its value cannot be read.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// A value is outside its range.
    #[error("{key} is {value}, but must be {rule}")]
    Range {
        /// Dotted key.
        key: &'static str,
        /// Value found.
        value: String,
        /// The allowed range in words.
        rule: &'static str,
    },
}

impl Config {
    /// Reads and checks a configuration file, with the variables of the environment that replace its settings. The log warns
    /// of what it says in an old way.
    ///
    /// # Errors
    /// [`ConfigError`] when the file or a variable is unreadable, malformed or out of range.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let config = Self::with_overrides(&text, path, environment::of_process()?)?;
        for deprecation in config.geyser.deprecations() {
            tracing::warn!(path = %path.display(), "{deprecation}");
        }
        if config.store.encryption_key.is_none() {
            tracing::warn!(
                "secrets and headers of webhooks are kept in plaintext: set store.encryption-key, or the environment variable \
                 SLUICE_STORE__ENCRYPTION_KEY_FILE, to 32 random bytes in base64"
            );
        }
        Ok(config)
    }

    /// Checks a configuration text in which some settings are replaced; `path` only labels errors.
    fn with_overrides(
        text: &str,
        path: &Path,
        overrides: Vec<Override>,
    ) -> Result<Self, ConfigError> {
        if overrides.is_empty() {
            return Self::parse(text, path);
        }
        let refused = |message| ConfigError::Parse {
            path: path.to_owned(),
            message,
        };
        let file = toml::from_str(text).map_err(|error| refused(describe(text, &error)))?;
        let settings = environment::apply(file, &overrides)?;
        let config: Self = serde_path_to_error::deserialize(settings).map_err(|error| {
            let key = error.path().to_string();
            let message = environment::redacted(error.into_inner().message(), &overrides);
            refused(format!("{key}: {message}"))
        })?;
        config.check()?;
        Ok(config)
    }

    /// Checks a configuration text; `path` only labels errors.
    ///
    /// # Errors
    /// As [`Config::load`], except for reading.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::Parse {
            path: path.to_owned(),
            message: describe(text, &error),
        })?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.chain.check()?;
        self.geyser.check()?;
        self.freshness.check()?;
        if self.store.named().is_none() {
            return Err(ConfigError::Range {
                key: "store",
                value: "ambiguous or empty".to_owned(),
                rule: "either `path`, an SQLite file, or `url`, a PostgreSQL database",
            });
        }
        if let Some(url) = &self.store.url
            && !["postgres://", "postgresql://"]
                .iter()
                .any(|scheme| url.expose_secret().starts_with(scheme))
        {
            return Err(ConfigError::Range {
                key: "store.url",
                value: "REDACTED".to_owned(),
                rule: "of the form postgres://user:password@host/database",
            });
        }
        if self.api.keyless && !self.api.listen.ip().is_loopback() {
            return Err(ConfigError::Range {
                key: "api.keyless",
                value: "true".to_owned(),
                rule: "false unless api.listen is a loopback address: make an API key with `sluice keys add NAME`",
            });
        }
        if let Some(wallet) = &self.api.demo_wallet
            && !(self.api.keyless && is_of_this_machine(&self.chain.rpc_url))
        {
            return Err(ConfigError::Range {
                key: "api.demo-wallet",
                value: wallet.display().to_string(),
                rule: "absent unless api.keyless is true and chain.rpc-url is of this machine: pages sign with its key, which is for \
                       localnets alone",
            });
        }
        self.api.cors_origins.check()?;
        self.api.clients.check()?;
        self.bootstrap.check()?;
        self.telemetry.check()?;
        self.indexer.check()?;
        self.webhooks.check()
    }
}

/// Whether a URL names this machine by a loopback address or as `localhost`.
fn is_of_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn require_scheme(key: &'static str, url: &Url) -> Result<(), ConfigError> {
    if matches!(url.scheme(), "http" | "https") {
        return Ok(());
    }
    Err(ConfigError::Range {
        key,
        value: format!("{}:…", url.scheme()),
        rule: "an http or https URL",
    })
}

/// TOML errors quote the offending line, which may hold a token: keep the line number and the fault.
fn describe(text: &str, error: &toml::de::Error) -> String {
    let line = error
        .span()
        .and_then(|span| text.get(..span.start))
        .map(|before| before.matches('\n').count().saturating_add(1));
    match line {
        Some(line) => format!("line {line}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

#[cfg(test)]
mod tests;

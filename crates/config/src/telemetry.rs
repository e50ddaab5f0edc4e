//! Section `[telemetry]` of the configuration: where traces are sent.

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use crate::{ConfigError, require_scheme};

/// Where traces of messages are sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// URL at which a collector of OpenTelemetry takes traces, OTLP over HTTP; `None` for no traces. May carry a key.
    otlp_endpoint: Option<SecretString>,
    /// The share of messages of which traces are sent.
    pub trace_ratio: f64,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            trace_ratio: 1.0,
        }
    }
}

impl TelemetryConfig {
    /// Where a collector takes traces.
    #[must_use]
    pub fn otlp_endpoint(&self) -> Option<&str> {
        self.otlp_endpoint.as_ref().map(ExposeSecret::expose_secret)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if let Some(endpoint) = self.otlp_endpoint() {
            let url: Url = endpoint.parse().map_err(|_| ConfigError::Range {
                key: "telemetry.otlp-endpoint",
                value: "REDACTED".to_owned(),
                rule: "a URL, as http://127.0.0.1:4318/v1/traces",
            })?;
            require_scheme("telemetry.otlp-endpoint", &url)?;
        }
        if !(0.0..=1.0).contains(&self.trace_ratio) {
            return Err(ConfigError::Range {
                key: "telemetry.trace-ratio",
                value: self.trace_ratio.to_string(),
                rule: "0 to 1",
            });
        }
        Ok(())
    }
}

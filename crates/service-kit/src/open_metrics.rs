//! OpenMetrics: the text format in which Prometheus reads the metrics of a process.

use std::fmt::Write;

use prometheus_client::{encoding::text::encode, registry::Registry};

/// Media type of the text.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a registry.
#[must_use]
pub fn text(registry: &Registry) -> String {
    let mut text = String::new();
    if let Err(error) = encode(&mut text, registry) {
        // Writing to a text cannot fail; if it does, the text says so.
        let _ = writeln!(text, "# {error}");
    }
    text
}

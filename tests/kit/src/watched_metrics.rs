//! Watched metrics: the names of those that the alerts and the dashboard in `deploy/` read.

use std::collections::BTreeSet;

const ALERTS: &str = include_str!("../../../deploy/prometheus/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/grafana/sluice.json");

/// Names that begin with `prefix`, `sluice_api_` for instance.
///
/// # Panics
/// When there is none, since a test of nothing would pass.
#[must_use]
pub fn of(prefix: &str) -> BTreeSet<&'static str> {
    let words = [ALERTS, DASHBOARD]
        .into_iter()
        .flat_map(|text| text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()));
    let names: BTreeSet<_> = words.filter(|word| word.starts_with(prefix)).collect();
    assert!(!names.is_empty(), "deploy/ reads no metric of {prefix}");
    names
}

//! Watched metrics: the names of those that the alerts and the dashboard in `deploy/` read.

use std::collections::BTreeSet;

const ALERTS: &str = include_str!("../../../deploy/prometheus/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/grafana/sluice.json");

/// Requires that the text of a process exports each of them whose name begins with `prefix`, `sluice_api_` for instance.
///
/// # Panics
/// When it lacks one, and when there is none, since a test of nothing would pass.
pub fn assert_exported(prefix: &str, text: &str) {
    let names = names(prefix);
    assert!(!names.is_empty(), "deploy/ reads no metric of {prefix}");
    for name in names {
        let is_exported = |line: &str| line.split(['{', ' ']).next() == Some(name);
        assert!(text.lines().any(is_exported), "{name} is not in\n{text}");
    }
}

fn names(prefix: &str) -> BTreeSet<&'static str> {
    let words = [ALERTS, DASHBOARD]
        .into_iter()
        .flat_map(|text| text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()));
    words.filter(|word| word.starts_with(prefix)).collect()
}

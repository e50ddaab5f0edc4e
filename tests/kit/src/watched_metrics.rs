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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The beginnings of what Sluice exports.
    const OURS: [&str; 2] = ["sluice_api_", "sluice_indexer_"];

    fn is_ours(name: &str) -> bool {
        OURS.iter().any(|prefix| name.starts_with(prefix))
    }

    /// The names in an expression that labels follow, and those that are a metric of ours.
    fn metrics(expression: &str) -> (Vec<&str>, Vec<&str>) {
        let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let before = |text: &str| text.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
        let selected = expression.match_indices('{');
        let selected = selected.map(|(at, _)| &expression[before(&expression[..at])..at]);
        let words = expression.split(|c: char| !is_word(c));
        (
            selected.collect(),
            words.filter(|word| is_ours(word)).collect(),
        )
    }

    /// The panels with queries: their titles and their expressions.
    fn panels(dashboard: &Value) -> Vec<(&str, Vec<&str>)> {
        let panels = dashboard["panels"].as_array().expect("a list of panels");
        let queried = panels.iter().filter(|panel| panel["type"] != "row");
        queried
            .map(|panel| {
                let title = panel["title"].as_str().expect("a title");
                let targets = panel["targets"].as_array().expect("a list of targets");
                let expressions = targets.iter().map(|target| &target["expr"]);
                let texts = expressions.map(|text| text.as_str().expect("an expression"));
                (title, texts.collect())
            })
            .collect()
    }

    #[test]
    fn every_panel_of_the_dashboard_shows_metrics_of_ours_and_no_others() {
        let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
        let panels = panels(&dashboard);
        assert!(!panels.is_empty(), "the dashboard shows nothing");
        let mut shown = BTreeSet::new();
        for (title, expressions) in panels {
            assert!(!expressions.is_empty(), "{title:?} has no query");
            for expression in expressions {
                let (selected, ours) = metrics(expression);
                assert!(!ours.is_empty(), "{title:?} shows {expression}");
                for name in selected {
                    assert!(is_ours(name), "{title:?} shows {name:?}");
                }
                shown.extend(ours);
            }
        }
        // What the processes are tested to export holds these.
        let watched: BTreeSet<&str> = OURS.into_iter().flat_map(names).collect();
        let missed: Vec<_> = shown.difference(&watched).collect();
        assert!(missed.is_empty(), "{missed:?}");
    }

    #[test]
    fn panels_have_numbers_of_their_own_and_the_chosen_source() {
        let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
        let panels = dashboard["panels"].as_array().expect("a list of panels");
        let mut numbers = BTreeSet::new();
        for panel in panels {
            let number = panel["id"].as_u64().expect("a number");
            assert!(numbers.insert(number), "{number} stands twice");
            if panel["type"] != "row" {
                let source = &panel["datasource"]["uid"];
                assert_eq!(source, "${datasource}", "{}", panel["title"]);
            }
        }
    }

    #[test]
    fn names_before_labels_are_found_whatever_they_begin_with() {
        let (selected, ours) =
            metrics("rate(sluice_api_a{x=\"y\"}[1m]) / sum(sluice_indexer_b) + up{}");
        assert_eq!(selected, ["sluice_api_a", "up"]);
        assert_eq!(ours, ["sluice_api_a", "sluice_indexer_b"]);
    }
}

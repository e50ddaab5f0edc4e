//! Limits on the cost of the guard.

use std::fs;

use serde_json::Value;
use sluice_transaction::compute_table::{GUARD_ONE_HOP, GUARD_TWO_HOPS};

#[test]
fn every_figure_of_the_guard_is_met() {
    let figures = sluice_bench::guard::figures();
    assert!(figures.iter().all(|figure| figure.met), "{figures:#?}");
}

/// The compute model's line of the guard is the proved bound itself, neither under it nor over it.
#[test]
fn the_compute_model_s_line_of_the_guard_is_the_proved_bound() {
    // From the folder of this package, in which its tests run.
    let report = fs::read_to_string("../../bench-report.json").expect("the report is committed");
    let report: Value = serde_json::from_str(&report).expect("the benchmark writes JSON");
    let figures = report["guard"].as_array().expect("a list");
    let proved = |pools: &str| {
        let name = format!("the guard itself in a swap through {pools}, at most, proved");
        let figure = figures.iter().find(|each| each["figure"] == name.as_str());
        figure.expect("it is in the report")["value"].as_u64()
    };
    assert_eq!(proved("one pool"), Some(GUARD_ONE_HOP.into()));
    assert_eq!(proved("two pools"), Some(GUARD_TWO_HOPS.into()));
}

//! Limits on the cost of the guard.

#[test]
fn every_figure_of_the_guard_is_met() {
    let figures = sluice_bench::guard::figures();
    assert!(figures.iter().all(|figure| figure.met), "{figures:#?}");
}

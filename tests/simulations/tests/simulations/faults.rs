//! Promises of the market under faults between it and the chain, one script each.
//!
//! Every script is also watched by a reader that must never see anything but the whole truth of one slot.

mod contents;
mod cuts;
mod dead;
mod explore;
mod forks;
mod replay;
mod servers;
mod snapshots;
mod statuses;
mod streams;
mod writes;

use sluice_simulations::faults::Scenario;

/// The market never left its first stream, nor asked the node again.
fn unbroken(scenario: &Scenario) {
    assert_eq!(
        scenario.server.requests().len(),
        1,
        "the market left its stream"
    );
}

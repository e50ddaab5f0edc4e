//! What the market promises, whatever goes wrong between it and the chain. Each test is one script; every script is
//! also watched by a reader that must never see anything but the whole truth of one slot.

mod contents;
mod dead;
mod explore;
mod forks;
mod replay;
mod snapshots;
mod statuses;
mod streams;
mod writes;

use sluice_simulations::faults::Scene;

/// The market never left its first stream, nor asked the node again.
fn unbroken(scene: &Scene) {
    assert_eq!(
        scene.server.requests().len(),
        1,
        "the market left its stream"
    );
}

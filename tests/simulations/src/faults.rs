//! Faults: the market between a scripted Yellowstone server and a scripted node, against a model.
//!
//! A script reports a tree of slots and writes, and breaks whatever a network, a server or a node can break. Two things
//! are held against it: while it runs, whatever any reader sees must be the whole truth of one slot; and when it has
//! gone quiet, both views must equal the model.

pub mod explore;
pub mod model;
pub mod observed;
pub mod scenario;
pub mod watch;

pub use scenario::{GENESIS, Scenario};

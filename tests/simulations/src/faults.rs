//! Scripts that go wrong: the market's real task between a scripted Geyser server and a scripted node, over sockets,
//! against a model of the chain that shares nothing with it.
//!
//! A script tells a tree of slots and writes, and breaks whatever a network, a server or a node can break. Two things
//! are held against it: while it runs, whatever any reader sees must be the whole truth of one slot; and when it has
//! gone quiet, both views must equal the model.

pub mod explore;
pub mod model;
pub mod observed;
pub mod scene;
pub mod watch;

pub use scene::{GENESIS, Scene};

//! What the stream says of slots, until their fate is known.
//!
//! [`content`] is what happened in a slot, as far as it is watched; [`fork_tree`] knows how slots descend from
//! each other and says when the content of which may be told, and when it must be taken back, which it says in [`steps`].

pub mod content;
pub mod fork_tree;
mod node;
pub mod steps;

pub use content::SlotContent;
pub use fork_tree::SlotTree;
pub use steps::{Block, RevertReason, Step};

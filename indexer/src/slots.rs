//! Fork tree of unconfirmed slots: what to emit, retract and checkpoint (pure).
//!
//! [`SlotEvents`] are what happened in a slot, as far as any webhook watches it. [`ForkTree`] knows how slots descend
//! from each other, and answers each update with [`Action`]s: when the events of a slot may be emitted, and when they
//! must be retracted. Each connection has its own tree, which begins at a [`ResumePoint`]. [`Ownership`] knows which program
//! owned an account before a slot, and [`Taking`]s are the accounts that left it without a write that shows it.

mod action;
mod fork_tree;
mod gap;
pub mod known_accounts;
pub mod ownership;
mod resume_point;
pub(crate) mod slot_events;
mod slot_node;
pub mod takings;

pub use action::{Action, Block, RetractReason};
pub use fork_tree::{ForkTree, ForkTreeError};
pub use gap::Gap;
pub use ownership::{LastOwners, Ownership};
pub use resume_point::ResumePoint;
pub use slot_events::{SlotEvent, SlotEventRef, SlotEvents};
pub use takings::{Taken, Taking};

//! The whole indexer: a scripted stream at one end, a real receiver at the other, a real database in
//! between. One file per promise.

mod delivery;
mod events;
mod filters;
mod forks;
mod gaps;
mod machine;
mod operations;
mod storm;
mod updates;

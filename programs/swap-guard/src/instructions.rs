//! The guard's instructions: one file for each list of accounts, and the terms that all of them have.

pub mod swap;
pub mod swap_two_hops;
pub mod terms;

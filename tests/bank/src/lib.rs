//! What the tests of this workspace share with those that run in memory: pools, and the names of their accounts.

#[path = "../../src/names.rs"]
pub mod names;
#[path = "../../src/pool.rs"]
pub mod pool;

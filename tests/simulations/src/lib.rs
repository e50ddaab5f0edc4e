//! Simulations: whole services against random faults, each judged by a model that shares nothing with them.

pub mod chaos;
pub mod fates;
pub mod faults;
pub mod parity;

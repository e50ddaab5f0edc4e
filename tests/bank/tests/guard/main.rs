//! The built guard and the stand-in exchange on a validator's bank.
//!
//! It is a validator's own runtime, with its clock, its token programs and the client that a validator would be asked
//! with.

mod bank;
mod client;
mod clock;
mod forms;
mod swaps;

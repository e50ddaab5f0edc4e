//! One file per instruction.

pub mod swap;

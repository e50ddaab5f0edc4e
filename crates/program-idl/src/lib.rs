//! IDLs of programs: what the bytes of their events mean, and where programs publish them (pure).
//!
//! An Anchor program has an IDL, a JSON file that lists its events and the types of their fields: [`schema`] reads it,
//! [`decode`] turns the bytes of an event into JSON by it, [`account`] takes it out of the accounts in which programs publish
//! theirs. An IDL comes from anybody, so what it may cost is bounded.
//!
//! Names become camelCase, like everything else that Sluice writes. Integers of up to 64 bits become JSON
//! integers, larger ones decimal strings; keys base58; bytes base64; an absent option null; an enum its
//! variant's name, or an object of that name and its fields when it has any.
//!
//! Bytes that do not fit their description exactly, to the last one, are not decoded: a program that was
//! upgraded past its IDL is shown raw rather than wrong.

pub mod account;
pub mod decode;
pub mod schema;

pub use schema::{Schema, SchemaError};

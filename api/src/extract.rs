//! Extractors: bodies, queries, amounts and addresses of requests, checked and typed for the handlers.

mod amount;
mod echo;
mod extensions;
mod json;
mod known_addresses;
mod pools;
mod pubkey;
mod query;

pub use amount::{Amount, Digits, PositiveAmount};
pub use echo::echoed;
pub use extensions::Extensions;
pub use json::{StrictJson, optional_object, read_json, read_optional_json};
pub use pools::{Pools, PoolsText};
pub use pubkey::{Address, parse_pubkey};
pub use query::QueryMap;

//! What a request may contain, checked at the door: handlers see typed values only.

mod amount;
mod json;
mod pubkey;
mod query;

pub use amount::Amount;
pub use json::StrictJson;
pub use pubkey::parse_pubkey;
pub use query::QueryMap;

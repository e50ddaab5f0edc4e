//! Truth run: the real service on a real validator while its streams are cut, counted against the chain.

pub mod truth;

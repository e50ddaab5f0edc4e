//! Test kit: doubles of everything around the services, each as strict as the real thing or stricter.
//!
//! Without features it is names and pools, which is all that the tests on a validator's bank take.

#[cfg(feature = "chain")]
pub mod accounts;
#[cfg(feature = "chain")]
pub mod cast;
#[cfg(feature = "chain")]
pub mod chain;
#[cfg(feature = "decoders")]
pub mod decoders;
#[cfg(feature = "chain")]
pub mod figure;
#[cfg(feature = "chain")]
pub mod filters;
#[cfg(feature = "chain")]
pub mod line;
#[cfg(feature = "chain")]
pub mod load;
pub mod names;
#[cfg(feature = "chain")]
pub mod node;
pub mod pool;
#[cfg(feature = "svm")]
pub mod random_swaps;
#[cfg(feature = "chain")]
pub mod recorded;
#[cfg(feature = "chain")]
pub mod rpc;
#[cfg(feature = "chain")]
pub mod server;
#[cfg(feature = "svm")]
pub mod svm;
#[cfg(feature = "chain")]
pub mod told;
#[cfg(feature = "chain")]
pub mod updates;
#[cfg(feature = "chain")]
pub mod world;

//! Test kit: doubles of everything around the services, each as strict as the real thing or stricter.
//!
//! Without features it is names, pools and a small disk.

#[cfg(feature = "chain")]
pub mod accounts;
#[cfg(feature = "chain")]
mod arrival;
#[cfg(feature = "chain")]
pub mod chain_script;
#[cfg(feature = "decoders")]
pub mod decoders;
#[cfg(feature = "chain")]
pub mod figure;
#[cfg(feature = "chain")]
pub mod filters;
#[cfg(feature = "chain")]
pub mod free_port;
#[cfg(feature = "chain")]
pub mod load;
pub mod names;
#[cfg(feature = "chain")]
pub mod network_link;
pub mod pool;
#[cfg(feature = "chain")]
pub mod population;
#[cfg(feature = "svm")]
pub mod random_routes;
#[cfg(feature = "svm")]
pub mod random_swaps;
pub mod route;
#[cfg(feature = "chain")]
pub mod rpc_node;
#[cfg(feature = "chain")]
pub mod running_chain;
#[cfg(feature = "chain")]
pub mod scripted_chain;
#[cfg(feature = "chain")]
pub mod scripted_pools;
pub mod small_disk;
#[cfg(feature = "svm")]
pub mod svm;
#[cfg(feature = "chain")]
pub mod transaction_flow;
#[cfg(feature = "chain")]
pub mod updates;
#[cfg(feature = "chain")]
pub mod watched_metrics;
#[cfg(feature = "chain")]
pub mod webhook_receiver;
#[cfg(feature = "chain")]
pub mod yellowstone_server;

//! Conformance of both databases with the promises of the store.
//!
//! Every function here runs on an SQLite file and on a PostgreSQL server.

mod accepted_batches;
mod active;
mod api_keys;
mod backfills;
mod backups;
mod batches;
mod bodies;
mod conflicts;
mod encryption;
mod fixture;
mod history;
mod idls;
mod leadership;
mod learned_units;
mod lease_on_insert;
mod leases;
mod operations;
mod order;
mod pauses;
mod probing;
mod quotas;
mod races;
mod recoveries;
mod retention;
mod secrets;
mod slots;
mod staging;
mod stats;
mod webhooks;

/// Runs each function once per database.
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(&$crate::fixture::Fixture::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(&$crate::fixture::Fixture::postgres(concat!(module_path!(), "::", stringify!($promise))).await).await;
            })+
        }
    };
}
pub(crate) use on_both;

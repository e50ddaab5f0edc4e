//! The whole indexer between a scripted stream, a real database and a webhook receiver.
//!
//! One file per promise; each is kept with an SQLite file and with a PostgreSQL server.

mod beginnings;
mod closes;
mod delivery;
mod edits;
mod events;
mod expectations;
mod filters;
mod flow;
mod forks;
mod gaps;
mod idls;
mod leadership;
mod linked_server;
mod many_keys;
mod operations;
mod owners;
mod pauses;
mod program_states;
mod read_again;
mod rejected_keys;
mod standstill;
mod storm;
mod token_owners;
mod traces;
mod two_servers;

/// Runs each function once per database.
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(sluice_harness::indexer::IndexerHarness::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
                let harness = sluice_harness::indexer::IndexerHarness::postgres(folder, stringify!($promise)).await;
                super::$promise(harness).await;
            })+
        }
    };
}
pub(crate) use on_both;

//! The whole indexer: a scripted stream at one end, a real receiver at the other, a real database in
//! between. One file per promise; each is kept with an SQLite file and with a PostgreSQL server.

mod beginnings;
mod delivery;
mod events;
mod filters;
mod forks;
mod gaps;
mod operations;
mod storm;

/// Runs each function once per database.
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise(sluice_harness::indexer::Machine::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
                let machine = sluice_harness::indexer::Machine::postgres(folder, stringify!($promise)).await;
                super::$promise(machine).await;
            })+
        }
    };
}
pub(crate) use on_both;

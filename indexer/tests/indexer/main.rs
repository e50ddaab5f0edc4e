//! The whole indexer: a scripted stream at one end, a real receiver at the other, a real database in
//! between. One file per promise; each is kept with an SQLite file and with a PostgreSQL server.

mod beginnings;
mod delivery;
mod events;
mod fates;
mod filters;
mod forks;
mod gaps;
mod machine;
mod operations;
mod storm;
mod updates;

/// Runs each function once per database.
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise($crate::machine::Machine::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise($crate::machine::Machine::postgres(stringify!($promise)).await).await;
            })+
        }
    };
}
pub(crate) use on_both;

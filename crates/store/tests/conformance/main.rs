//! Each promise of the store, kept by both databases: every function here runs on an SQLite file and on a
//! PostgreSQL server.

mod active;
mod api_keys;
mod delivering;
mod fixture;
mod handover;
mod history;
mod leadership;
mod order;
mod races;
mod retention;
mod slots;
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

//! Chaos: indexers, dispatchers and databases killed at random, and nothing missing in the end.
//!
//! A played chain of numbered events ([`numbered_chain`], [`events`], streamed by [`feed`]) is followed by processes of the real `sluice`
//! ([`process`]) on a real database ([`database`]), and they deliver to receivers that answer in every wrong way
//! ([`receiver`]). All but the stream and the receivers is killed with SIGKILL, and the processes ([`fleet`]) are suspended
//! with SIGSTOP as well, for so long that others take over ([`run`]). Between the kills come disasters ([`disaster`]): hosts lose
//! power, networks fall apart, disks fill up, clocks are set ([`clock`]). Then there is time to deliver what is owed
//! ([`drained`]). What arrived is kept ([`ledger`]), or written down ([`history`]), and held against the chain ([`verdict`]): no count, id or checkpoint of
//! the database has a say in what should have arrived.

pub mod clock;
pub mod database;
pub mod disaster;
pub mod drained;
pub mod events;
pub mod feed;
pub mod fleet;
pub mod history;
pub mod ledger;
pub mod numbered_chain;
pub mod process;
pub mod receiver;
pub mod report;
pub mod run;
pub mod subscriber;
pub mod verdict;

pub use database::Kind;
pub use disaster::Disaster;
pub use report::Report;
pub use run::{Plan, run};

//! Operations on the store, one file each: every statement, once for both databases.

mod active;
mod api_keys;
mod checkpoints;
mod claim;
mod commit;
mod filters;
mod handover;
mod history;
mod insert;
mod lanes;
mod leadership;
mod receivers;
mod record;
mod redeliver;
mod retention;
mod rows;
mod stats;
mod store;
mod times;
mod webhook_row;
mod webhooks;

pub use self::{commit::PendingCommit, leadership::Leadership, store::Store};

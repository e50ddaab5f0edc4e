//! Operations on the store, one file each: every statement, once for both databases.

mod claim;
mod commit;
mod filters;
mod handover;
mod history;
mod insert;
mod keys;
mod lanes;
mod lead;
mod live;
mod progress;
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

pub use self::{commit::Staged, lead::Lead, store::Store};

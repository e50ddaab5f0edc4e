//! Operations on the store, one file each: every statement, once for both databases.

mod account_gaps;
mod active;
mod address_limits;
mod api_keys;
mod checkpoints;
mod commit;
mod encryption;
mod endpoint_data;
mod endpoints;
mod epoch;
mod filters;
mod history;
mod insert;
mod known_accounts;
mod lanes;
mod leadership;
mod learned_units;
mod lease_due;
mod lease_followers;
mod lease_on_insert;
mod quotas;
mod record;
mod recovery;
mod redeliver;
mod refusals;
mod release;
mod retention;
mod retried;
mod rows;
mod skip;
mod stats;
mod store;
mod times;
mod webhook_row;
mod webhooks;

pub use self::{commit::PendingCommit, leadership::Leadership, store::Store};

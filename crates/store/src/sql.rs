//! Operations on the store, one file each: every statement, once for both databases.

mod accepted_batches;
mod account_gaps;
mod active;
mod address_limits;
mod api_keys;
mod backfills;
mod backup;
mod bodies;
mod checkpoints;
mod commit;
mod due_webhooks;
mod encryption;
mod endpoint_data;
mod endpoints;
mod epoch;
mod filters;
mod history;
mod idls;
mod insert;
mod known_accounts;
mod lanes;
mod leadership;
mod learned_units;
mod lease_due;
mod lease_followers;
mod lease_on_insert;
mod load_leased;
mod message_rows;
mod numbered;
mod operations;
mod pauses;
mod pending_leases;
mod quotas;
mod readiness;
mod record;
mod recovery;
mod redeliver;
mod refusals;
mod release;
mod retention;
mod retried;
mod rows;
mod sequence_range;
mod settling;
mod shares;
mod skip;
mod staged_batch;
mod stats;
mod store;
mod times;
mod webhook_row;
mod webhooks;

pub use self::{
    commit::PendingCommit, leadership::Leadership, pending_leases::PendingLeases, store::Store,
};

//! Store: API keys, webhooks, messages, deliveries and checkpoints, in SQLite or PostgreSQL.
//!
//! `sluice keys` writes API keys; the API writes webhooks, redeliveries, and the deliveries of temporary
//! webhooks; the indexer writes messages and checkpoints, and records attempts. All may be different
//! processes. [`Store`] keeps everything in one SQLite file ([`Store::open`]) or in PostgreSQL, for several
//! machines ([`Store::connect`]), and promises the same of both:
//!
//! - **A commit is all or nothing.** [`Store::commit`] inserts messages, numbers them and moves
//!   the checkpoint in one transaction that is on disk when it returns.
//! - **Replay is harmless.** A message id is known once; inserting it again does nothing and takes no
//!   sequence number.
//! - **Sequences have no holes.** Each webhook's messages are numbered 1, 2, 3, … in commit order.
//! - **A crash repeats, never loses.** A leased delivery is due again when its lease runs out, and results
//!   under that lease no longer count, unless the message was accepted.
//! - **Order is kept where asked.** Of the deliveries that must be made in order only the first pending one
//!   is ever due.
//! - **One leader writes.** What is written through [`Leadership::store`] is refused once another process leads.
//! - **A filter change has a date.** Every write that changes what is matched gets a revision, and with
//!   it the slot from which on nothing must be missed.
//! - **The queue is never in memory.** The price of leasing depends on what is leased, not on what is pending.
//! - **Secrets are sealed.** Under an encryption key ([`Store::encrypted`]) neither a signing secret nor a header of an owner
//!   is stored as it is.
//! - **A backup is of one moment.** Messages, deliveries and checkpoint fit together, and what came after is made again.
//! - **A vanished file is noticed.** SQLite keeps writing happily into a deleted file and loses it all
//!   at exit; every access checks that the path still names the file that was opened.
//!
//! | for | see |
//! |---|---|
//! | API keys | [`Store::create_api_key`], [`Store::api_key_by_hash`], [`Store::api_keys`], [`Store::revoke_api_key`], [`Store::set_quotas`], [`Store::usage`], [`Store::check_stored`], [`Store::check_messages`], [`Store::adopt_webhooks`] |
//! | webhooks | [`Store::create_webhook`], [`Store::create_webhook_once`], [`Store::created_webhook`], [`Store::webhook`], [`Store::list_webhooks`], [`Store::update_webhook`], [`Store::edit_filters`], [`Store::rotate_secret`], [`Store::secrets`], [`Store::delete_webhook`] |
//! | active webhooks | [`Store::webhook_revision`], [`Store::active_webhooks`], [`Store::active_changes`], [`Store::filter_change`], [`Store::record_filter_state`] |
//! | the chain | [`Store::commit`], [`Store::checkpoint`], [`Store::unconfirmed_slots`], [`Store::messages_of_slot`], [`Store::account_gaps`], [`Store::ended_pauses`], [`Store::paused_with_heartbeat`], [`Store::try_acquire_leadership`] |
//! | requested backfills | [`Store::request_backfill`], [`Store::backfill`], [`Store::next_backfill`], [`Store::record_backfill`] |
//! | delivery | [`Store::commit_pending`], [`Store::settle`], [`Store::lease_due`], [`Store::lease_due_pending`], [`Store::lease_relayed`], [`Store::record`], [`Store::pull_forward`], [`Store::release`], [`Store::endpoint`], [`Store::restart_endpoint`], [`Store::next_due`] |
//! | history | [`Store::messages_after`], [`Store::deliveries`], [`Store::redeliver`], [`Store::skip`] |
//! | operational webhooks | [`Store::set_operations`], [`Store::operations`], [`Store::operation_recipients`], [`Store::troubled_webhooks`], [`Store::used_up_quotas`] |
//! | encryption | [`Store::encrypted`], [`Store::reencrypt`] |
//! | compute units | [`Store::learned_units`], [`Store::keep_learned_units`] |
//! | backups | [`Store::back_up`], [`Store::restore`] |
//! | upkeep | [`Store::prune`], [`Store::queue_stats`], [`Store::readiness`], [`Store::check`], [`Store::server_time`], [`Store::shared_time`], [`Store::schema_of_file`], [`Store::schema_of_server`] |
//!
//! The types of `model` know no SQL; `sql` holds the statements, and `backend`, which speaks to the two databases, is
//! the only place in Sluice that names `sqlx`. Time and randomness are parameters.

mod backend;
mod error;
mod model;
mod sql;

pub use backend::SchemaVersion;
#[cfg(feature = "private-cluster")]
pub use backend::private_cluster as testing;
pub use error::StoreError;
pub use model::{
    AcceptedApiKey, Access, AccountGap, ActiveChanges, ActiveWebhook, ActiveWebhooks,
    AddressLimits, ApiKey, ApiKeyHash, ApiKeyId, ApiKeySecret, Attempt, AttemptResult, Backfill,
    BackfillKind, BackfillRequest, BackfillState, BackfillTurn, Backup, Batch, BodyTemplate,
    Breaker, ChainIdl, Checkpoints, Commit, Committed, Conditions, CreatedWebhook, Delivery,
    DeliveryLog, DeliveryOptions, DeliveryOrder, DeliveryQuery, DeliveryState, EncryptionKeys,
    EndpointChange, EndpointState, EventKind, EventKinds, FilterChange, FilterEdit, FilterEdited,
    FilterLimits, FilterState, Filters, Held, Holder, Idempotency, InstructionPrefix,
    InvalidEncryptionKey, InvalidId, KnownAccount, KnownAccountChanges, Lease, LeaseLimits,
    LeaseRequest, LeaseToken, LeasedDelivery, Load, MAX_API_KEY_DAYS, MAX_ATTEMPTS_PER_SECOND,
    MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, MAX_BATCH_WAIT, MAX_CONCURRENCY, MAX_IDL_BYTES,
    MAX_OWN_RETRY_PAUSE_SECS, MAX_OWN_RETRY_PAUSES, MAX_OWNER_IDL_BYTES, MAX_PAYLOAD_BYTES,
    MAX_PREVIOUS_SECRETS, MAX_RESPONSE_BYTES, MIN_BATCH_BYTES, MIN_PAYLOAD_BYTES, MOST_PULLED,
    Memcmp, MessageId, MessageKind, MessagePage, NewApiKey, NewMessage, NewWebhook, Observation,
    OperationKind, OperationRecipient, Outcome, PackedMessages, Pause, Payload, QueueStats, Quotas,
    Readiness, Recorded, Recovering, Redeliver, Removed, ResumeState, Retention, Revision, Scope,
    Scopes, Secret, Secrets, SharedTime, SignatureVersion, Skipped, SlotMessage, StoredIdls,
    StoredMessage, Tenant, TenantShares, Timestamp, Timings, TransactionOutcome, TroubledWebhook,
    UnconfirmedSlots, UploadedIdl, Usage, UsedUpQuota, Webhook, WebhookDefinition, WebhookId,
    WebhookPage, WebhookSet, api_key_name_fault,
};
pub use sluice_chain_types::Commitment;
pub use sql::{Leadership, PendingCommit, PendingLeases, Store};

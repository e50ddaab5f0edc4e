//! Model: plain types of what is stored, without SQL and without waiting (pure).

mod active;
mod address_limits;
mod api_keys;
mod attempt;
mod backfill;
mod backup;
mod batch;
mod checkpoint;
mod commit;
mod conditions;
mod delivery;
mod delivery_options;
mod encryption;
mod endpoint;
mod event_kind;
mod fair_part;
mod filter_state;
mod filters;
mod id;
mod idempotency;
mod idl;
mod known_account;
mod lease;
mod message;
mod operation;
mod pace;
mod packed_messages;
mod pause;
mod queue_stats;
mod readiness;
mod retention;
mod scopes;
mod secret;
mod tenant;
mod timestamp;
mod webhook;
mod webhook_set;

pub use self::{
    active::{ActiveChanges, ActiveWebhook, ActiveWebhooks},
    address_limits::AddressLimits,
    api_keys::{
        AcceptedApiKey, Access, ApiKey, ApiKeyHash, ApiKeyId, ApiKeySecret, MAX_API_KEY_DAYS,
        NewApiKey, Quotas, Usage, api_key_name_fault,
    },
    attempt::{
        Attempt, AttemptResult, MAX_RESPONSE_BYTES, MOST_PULLED, Observation, Outcome, Recorded,
        Recovering, Timings,
    },
    backfill::{Backfill, BackfillKind, BackfillRequest, BackfillState, BackfillTurn},
    backup::Backup,
    batch::{Batch, MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, MAX_BATCH_WAIT, MIN_BATCH_BYTES},
    checkpoint::{AccountGap, Checkpoints, ResumeState, UnconfirmedSlots},
    commit::{Commit, Committed},
    conditions::{Conditions, InstructionPrefix, Memcmp, TransactionOutcome},
    delivery::{Delivery, DeliveryLog, DeliveryQuery, DeliveryState, Redeliver, Skipped},
    delivery_options::{
        DeliveryOptions, MAX_ATTEMPTS_PER_SECOND, MAX_CONCURRENCY, MAX_OWN_RETRY_PAUSE_SECS,
        MAX_OWN_RETRY_PAUSES, MAX_PAYLOAD_BYTES, MIN_PAYLOAD_BYTES, Payload, SignatureVersion,
    },
    encryption::{EncryptionKeys, InvalidEncryptionKey},
    endpoint::{Breaker, EndpointChange, EndpointState},
    event_kind::{EventKind, EventKinds},
    filter_state::{FilterChange, FilterState, Revision},
    filters::{FilterEdit, FilterLimits, Filters},
    id::{InvalidId, MessageId, WebhookId},
    idempotency::{CreatedWebhook, Idempotency},
    idl::{ChainIdl, MAX_IDL_BYTES, MAX_OWNER_IDL_BYTES, StoredIdls, UploadedIdl},
    known_account::{KnownAccount, KnownAccountChanges},
    lease::{Lease, LeaseLimits, LeaseRequest, LeaseToken, LeasedDelivery},
    message::{BodyTemplate, MessageKind, MessagePage, NewMessage, SlotMessage, StoredMessage},
    operation::{OperationKind, OperationRecipient, TroubledWebhook, UsedUpQuota},
    packed_messages::PackedMessages,
    pause::Pause,
    queue_stats::QueueStats,
    readiness::Readiness,
    retention::{Removed, Retention},
    scopes::{Scope, Scopes},
    secret::{MAX_PREVIOUS_SECRETS, Secret, Secrets},
    tenant::{Held, Holder, Load, Tenant, TenantShares},
    timestamp::{SharedTime, Timestamp},
    webhook::{DeliveryOrder, FilterEdited, NewWebhook, Webhook, WebhookDefinition, WebhookPage},
    webhook_set::WebhookSet,
};
pub(crate) use self::{
    encryption::{SealFault, SealedColumn},
    fair_part::{Kept, fair_part},
    filters::edit_addresses,
    pace::Pace,
};

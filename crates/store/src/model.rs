//! Plain types of what is stored (pure): no SQL, no waiting.

mod active;
mod api_keys;
mod checkpoint;
mod deliveries;
mod event_kind;
mod filter_state;
mod filters;
mod id;
mod message;
mod secret;
mod timestamp;
mod webhook;

pub(crate) use self::filters::edit_addresses;
pub use self::{
    active::{ActiveChanges, ActiveWebhook, ActiveWebhooks},
    api_keys::{Access, ApiKey, ApiKeyHash, ApiKeyId, ApiKeySecret, NewApiKey},
    checkpoint::{ResumeState, UnconfirmedSlot},
    deliveries::{
        Attempt, Breaker, Claim, ClaimLimits, ClaimedDelivery, Delivery, DeliveryLog,
        DeliveryQuery, DeliveryState, EndpointState, Finished, Lease, MAX_RESPONSE_BYTES, Outcome,
        QueueStats, Redeliver, Removed, Retention, Ticket, Timings,
    },
    event_kind::{EventKind, EventKinds},
    filter_state::{FilterChange, FilterState, Revision},
    filters::{FilterEdit, FilterLimits, Filters},
    id::{InvalidId, MessageId, WebhookId},
    message::{
        BodyTemplate, Commit, Committed, MessageKind, MessagePage, NewMessage, SlotMessage,
        StoredMessage,
    },
    secret::{MAX_PREVIOUS_SECRETS, Secret, Secrets},
    timestamp::Timestamp,
    webhook::{DeliveryOrder, FilterEdited, NewWebhook, Webhook, WebhookDefinition, WebhookPage},
};

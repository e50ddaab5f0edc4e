//! Plain types of what is stored (pure): no SQL, no waiting.

mod checkpoint;
mod deliveries;
mod keys;
mod messages;
mod models;
mod webhooks;

pub(crate) use self::webhooks::edit_keys;
pub use self::{
    checkpoint::{Commitment, FilterChange, FilterState, OpenSlot},
    deliveries::{
        Attempt, Breaker, Claim, ClaimLimits, ClaimedDelivery, Delivery, DeliveryLog,
        DeliveryQuery, DeliveryState, EndpointState, Finished, Lease, MAX_RESPONSE_BYTES, Outcome,
        QueueStats, Redeliver, Removed, Retention, Ticket, Timings,
    },
    keys::{Access, ApiKey, ApiKeySecret, KeyHash, KeyId, NewKey},
    messages::{
        BodyTemplate, Commit, Committed, MessageKind, MessagePage, NewMessage, SlotMessage,
        StoredMessage,
    },
    models::{InvalidId, MessageId, Revision, Secret, Timestamp, WebhookId},
    webhooks::{
        DeliveryOrder, EventKind, EventKinds, FilterEdit, FilterEdited, FilterLimits, Filters,
        LiveChanges, LiveWebhook, LiveWebhooks, MAX_PREVIOUS_SECRETS, NewWebhook, Secrets, Webhook,
        WebhookDefinition, WebhookPage,
    },
};

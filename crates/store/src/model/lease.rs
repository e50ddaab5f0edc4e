//! Leases: the right to attempt a delivery until a time, how one is requested, and the delivery under it.

use std::sync::Arc;

use super::{
    batch::Batch,
    delivery_options::DeliveryOptions,
    id::{MessageId, WebhookId},
    message::MessageKind,
    secret::Secrets,
    tenant::{Holder, Tenant, TenantShares},
    timestamp::Timestamp,
    webhook_set::WebhookSet,
};

/// Proves a lease. A random number, so that no two leases share one, whatever process requested them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseToken(pub(crate) i64);

impl LeaseToken {
    /// A token from a random number, to be used for one request only.
    #[must_use]
    pub const fn from_random(random: u64) -> Self {
        Self(random.cast_signed())
    }
}

/// How many deliveries one request may lease.
#[derive(Clone, Copy, Debug)]
pub struct LeaseLimits {
    /// Deliveries in total.
    pub total: u32,
    /// Lease quota: deliveries of one webhook that may be leased at once, those leased earlier and by other
    /// processes included. An endpoint that hangs holds no more than this.
    pub quota: u32,
    /// Bytes of bodies in total.
    pub bytes: u64,
    /// Whether the first of what is due may have a longer body: it would never be delivered otherwise.
    pub oversized: bool,
}

impl LeaseLimits {
    /// So many deliveries, of one webhook as well as of all, with any number of bytes.
    #[must_use]
    pub const fn deliveries(count: u32) -> Self {
        Self {
            total: count,
            quota: count,
            bytes: u64::MAX,
            oversized: false,
        }
    }
}

/// A request for leases on deliveries.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// The time.
    pub now: Timestamp,
    /// End of the leases. It must lie beyond the deadline of an attempt.
    pub until: Timestamp,
    /// Proves the leases.
    pub token: LeaseToken,
    /// How many it may lease.
    pub limits: LeaseLimits,
    /// How many of them may be one tenant's.
    pub shares: TenantShares,
}

/// The right to attempt one delivery until a time: all that recording a result or releasing it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Identifier of the message, sent as `webhook-id`.
    pub id: MessageId,
    /// The webhook it is owed to.
    pub webhook: WebhookId,
    /// Position among the webhook's messages.
    pub sequence: u64,
    /// End of the lease, after which the delivery is due again.
    pub until: Timestamp,
    /// Proves the lease.
    pub token: LeaseToken,
    /// Whether later deliveries of the webhook wait until its result is recorded.
    pub in_order: bool,
    pub(crate) ordinal: i64,
}

impl Lease {
    /// Whether its webhook is among these.
    #[must_use]
    pub fn is_of(&self, webhooks: &WebhookSet) -> bool {
        webhooks.0.contains(&self.ordinal)
    }
}

/// The webhooks of some leases.
impl<'a> FromIterator<&'a Lease> for WebhookSet {
    fn from_iter<I: IntoIterator<Item = &'a Lease>>(leases: I) -> Self {
        Self(leases.into_iter().map(|lease| lease.ordinal).collect())
    }
}

/// A delivery that the holder of its lease alone may attempt.
#[derive(Clone, Debug)]
pub struct LeasedDelivery {
    /// The lease.
    pub lease: Lease,
    /// Owner of the webhook.
    pub tenant: Tenant,
    /// Callback URL at the time of the lease.
    pub url: String,
    /// Kind of the message.
    pub kind: MessageKind,
    /// Signing secrets that are valid now.
    pub secrets: Secrets,
    /// The webhook's own headers.
    pub headers: Vec<(String, String)>,
    /// Whether a large body may be sent compressed.
    pub gzip: bool,
    /// Body to be signed and sent as it is.
    pub body: String,
    /// When the message was stored.
    pub created: Timestamp,
    /// Attempts of this run of the retry schedule that are recorded.
    pub retry_index: u32,
    /// How it is put together with others; `None` when it is posted alone.
    pub batch: Option<Batch>,
    /// How its webhook is delivered to.
    pub options: Arc<DeliveryOptions>,
    /// In an ordered webhook with batches, the sequence of the first message of its batch; its own otherwise.
    pub head: u64,
    /// Whether it is the one delivery by which an endpoint whose breaker is not closed is tried.
    pub probe: bool,
    /// When its own retry is due, where it is tried ahead of its time, as a probe.
    pub ahead_of: Option<Timestamp>,
    /// When its attempt may begin, where the owner of its webhook asks for a rate: no process has the same turn.
    pub turn: Option<Timestamp>,
}

impl LeasedDelivery {
    /// Whose it is.
    #[must_use]
    pub const fn holder(&self) -> Holder {
        Holder {
            tenant: self.tenant,
            webhook: self.lease.ordinal,
        }
    }
}

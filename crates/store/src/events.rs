//! Messages on their way into the store.

use std::sync::Arc;

use crate::models::{MessageId, WebhookId};

/// A message body with a blank for the sequence number. The number is known only inside the
/// transaction that inserts the message, so the body is completed there; the suffix is shared, since
/// it is the same for every webhook an event concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyTemplate {
    prefix: String,
    suffix: Arc<str>,
}

impl BodyTemplate {
    /// A body of `prefix`, the sequence number in decimal, and `suffix`.
    #[must_use]
    pub fn new(prefix: String, suffix: Arc<str>) -> Self {
        Self { prefix, suffix }
    }

    /// The body with its sequence number.
    #[must_use]
    pub fn with_sequence(&self, sequence: u64) -> String {
        format!("{}{sequence}{}", self.prefix, self.suffix)
    }
}

/// A message to be stored for one webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// Identifier derived from the event: the same event has the same one, for ever.
    pub id: MessageId,
    /// Receiver.
    pub webhook: WebhookId,
    /// Slot of the event.
    pub slot: u64,
    /// Body, but for the sequence number.
    pub body: BodyTemplate,
}

/// What committing a slot did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Messages that were new. Known ones, and those of webhooks deleted meanwhile, are not counted.
    pub inserted: u64,
    /// The checkpoint afterwards.
    pub checkpoint: u64,
}

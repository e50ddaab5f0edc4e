//! Idempotency keys: a request to create a webhook that is repeated under one creates no second webhook.

use sha2::{Digest, Sha256};

use super::webhook::{Webhook, WebhookDefinition};
use crate::Secret;

/// A key that a caller chose for a request, and the hash of what the request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub(crate) key: String,
    pub(crate) hash: String,
}

impl Idempotency {
    /// The key of a request for a webhook of this definition, temporary or not.
    #[must_use]
    pub fn new(key: String, definition: &WebhookDefinition, temporary: bool) -> Self {
        let events: Vec<_> = definition.events.iter().map(|kind| kind.name()).collect();
        let WebhookDefinition {
            url,
            events: _,
            filters,
            conditions,
            operations,
            active,
            commitment,
            order,
            description,
            headers,
            gzip,
            heartbeat,
            batch,
            delivery,
        } = definition;
        let mut asked = serde_json::json!([
            url,
            events,
            filters.digest(),
            active,
            commitment.name(),
            order.name(),
            description,
            headers,
            gzip,
            heartbeat.map(|interval| interval.as_secs()),
            temporary,
        ]);
        // Left out without one, so that hashes of earlier releases stay what they are.
        if let (Some(batch), Some(asked)) = (batch, asked.as_array_mut()) {
            let wait = batch.max_wait.as_millis();
            asked.push(format!("{}/{}/{wait}", batch.max_messages, batch.max_bytes).into());
        }
        if let (false, Some(asked)) = (conditions.is_empty(), asked.as_array_mut()) {
            asked.push(serde_json::to_value(conditions).unwrap_or_default());
        }
        if let (false, Some(asked)) = (delivery.is_default(), asked.as_array_mut()) {
            asked.push(serde_json::to_value(delivery).unwrap_or_default());
        }
        if let (false, Some(asked)) = (operations.is_empty(), asked.as_array_mut()) {
            let names: Vec<_> = operations.iter().map(|kind| kind.name()).collect();
            asked.push(serde_json::json!({ "operations": names }));
        }
        Self {
            key,
            hash: hex::encode(Sha256::digest(asked.to_string())),
        }
    }
}

/// A webhook that was created, by this request or by an earlier one under the same key.
#[derive(Clone, Debug)]
pub struct CreatedWebhook {
    /// The webhook as it is now.
    pub webhook: Webhook,
    /// Its signing secret as it is now.
    pub secret: Secret,
    /// Whether an earlier request created it.
    pub repeated: bool,
}

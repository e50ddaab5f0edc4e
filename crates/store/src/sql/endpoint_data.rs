//! Endpoint data that all deliveries of a webhook share: URL, headers, secrets.

use std::sync::Arc;

use serde::Serialize;

use super::rows;
use crate::{
    Batch, DeliveryOptions, EncryptionKeys, Lease, LeaseRequest, LeasedDelivery, MessageId,
    MessageKind, Secrets, StoreError, Tenant, Timestamp, WebhookId,
    backend::{Row, json_rows},
};

/// The data that all deliveries of a webhook share.
pub(super) struct EndpointData {
    ordinal: i64,
    tenant: Tenant,
    webhook: WebhookId,
    url: String,
    secrets: Secrets,
    headers: Vec<(String, String)>,
    gzip: bool,
    batch: Option<Batch>,
    options: Arc<DeliveryOptions>,
}

/// The data of one message and of its delivery.
pub(super) struct DeliveryData {
    pub(super) id: MessageId,
    pub(super) sequence: u64,
    pub(super) kind: MessageKind,
    pub(super) body: String,
    pub(super) created: Timestamp,
    pub(super) retry_index: u32,
    pub(super) probe: bool,
    pub(super) ahead_of: Option<Timestamp>,
    pub(super) in_order: bool,
    pub(super) head: u64,
    pub(super) turn: Option<Timestamp>,
}

/// These webhooks, as a JSON parameter: an array of objects that name them as `webhook`.
pub(super) fn webhooks_json(ordinals: impl IntoIterator<Item = i64>) -> Result<String, StoreError> {
    #[derive(Serialize)]
    struct Ordinal {
        webhook: i64,
    }
    let rows: Vec<_> = ordinals
        .into_iter()
        .map(|webhook| Ordinal { webhook })
        .collect();
    json_rows(&rows)
}

impl EndpointData {
    /// From a row with `ordinal`, `api_key`, `id`, `url`, `secret`, `previous_secrets`, `previous_secrets_until`, `headers`,
    /// `gzip`, `delivery_options` and those of its batches of a webhook.
    pub(super) fn of(row: &Row, now: Timestamp, keys: &EncryptionKeys) -> Result<Self, StoreError> {
        Ok(Self {
            ordinal: row.integer("ordinal")?,
            tenant: rows::tenant(row)?,
            webhook: rows::webhook_id(row, "id")?,
            url: row.text("url")?,
            secrets: rows::secrets(row, now, keys)?,
            headers: rows::webhook_headers(row, keys)?,
            gzip: row.flag("gzip")?,
            batch: rows::batch(row)?,
            options: Arc::new(rows::delivery_options(row)?),
        })
    }

    /// The owner of the webhook.
    pub(super) const fn tenant(&self) -> Tenant {
        self.tenant
    }

    /// Whether its owner asks for a rate, by which attempts are leased.
    pub(super) fn is_paced(&self) -> bool {
        self.options.max_per_second.is_some()
    }

    /// A delivery to this endpoint, under the lease that was requested.
    pub(super) fn leased(&self, delivery: DeliveryData, request: &LeaseRequest) -> LeasedDelivery {
        LeasedDelivery {
            lease: Lease {
                id: delivery.id,
                webhook: self.webhook.clone(),
                sequence: delivery.sequence,
                until: request.until,
                token: request.token,
                in_order: delivery.in_order,
                ordinal: self.ordinal,
            },
            tenant: self.tenant,
            url: self.url.clone(),
            kind: delivery.kind,
            secrets: self.secrets.clone(),
            headers: self.headers.clone(),
            gzip: self.gzip,
            body: delivery.body,
            created: delivery.created,
            retry_index: delivery.retry_index,
            batch: self.batch,
            options: Arc::clone(&self.options),
            head: delivery.head,
            probe: delivery.probe,
            ahead_of: delivery.ahead_of,
            turn: delivery.turn,
        }
    }
}

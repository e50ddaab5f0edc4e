//! What every delivery to a webhook takes.

use serde::Serialize;

use super::rows;
use crate::{
    ClaimedDelivery, Lease, MessageId, MessageKind, Secrets, StoreError, Ticket, Timestamp,
    WebhookId,
    backend::{Row, json_rows},
};

/// What all messages of a webhook have in common.
pub(super) struct Receiver {
    ordinal: i64,
    webhook: WebhookId,
    url: String,
    secrets: Secrets,
    headers: Vec<(String, String)>,
    gzip: bool,
}

/// What is a message's own.
pub(super) struct Letter {
    pub(super) id: MessageId,
    pub(super) sequence: u64,
    pub(super) kind: MessageKind,
    pub(super) body: String,
    pub(super) created: Timestamp,
    pub(super) attempts_before: u32,
    pub(super) probe: bool,
    pub(super) in_order: bool,
}

/// These webhooks, as a JSON parameter: an array of objects that name them as `webhook`.
pub(super) fn named(ordinals: impl IntoIterator<Item = i64>) -> Result<String, StoreError> {
    #[derive(Serialize)]
    struct Named {
        webhook: i64,
    }
    let named: Vec<_> = ordinals
        .into_iter()
        .map(|webhook| Named { webhook })
        .collect();
    json_rows(&named)
}

impl Receiver {
    /// From a row with `ordinal`, `id`, `url`, `secret`, `previous_secrets`, `previous_secrets_until`, `headers` and
    /// `gzip` of a webhook.
    pub(super) fn of(row: &Row, now: Timestamp) -> Result<Self, StoreError> {
        Ok(Self {
            ordinal: row.integer("ordinal")?,
            webhook: rows::webhook_id(row, "id")?,
            url: row.text("url")?,
            secrets: rows::secrets(row, now)?,
            headers: rows::headers(row, "headers")?,
            gzip: row.flag("gzip")?,
        })
    }

    /// A message of this webhook, under a lease.
    pub(super) fn delivery(&self, letter: Letter, lease: Lease) -> ClaimedDelivery {
        ClaimedDelivery {
            ticket: Ticket {
                id: letter.id,
                webhook: self.webhook.clone(),
                sequence: letter.sequence,
                url: self.url.clone(),
                in_order: letter.in_order,
                ordinal: self.ordinal,
                lease,
            },
            kind: letter.kind,
            secrets: self.secrets.clone(),
            headers: self.headers.clone(),
            gzip: self.gzip,
            body: letter.body,
            created: letter.created,
            attempts_before: letter.attempts_before,
            probe: letter.probe,
        }
    }
}

//! What a subscriber reads: a webhook, without its secret.

use serde::Serialize;
use sluice_store::{Webhook, WebhookDefinition};

/// A webhook on the wire.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookView {
    id: String,
    url: String,
    events: Vec<&'static str>,
    filters: FiltersView,
    active: bool,
    /// ISO 8601, UTC.
    created: String,
    /// ISO 8601, UTC; null before the first delivery that the receiver accepted.
    last_triggered: Option<String>,
}

#[derive(Debug, Serialize)]
struct FiltersView {
    accounts: Vec<String>,
    programs: Vec<String>,
}

impl From<Webhook> for WebhookView {
    fn from(webhook: Webhook) -> Self {
        let WebhookDefinition {
            url,
            events,
            filters,
            active,
        } = webhook.definition;
        Self {
            id: webhook.id.to_string(),
            url,
            events: events.iter().map(sluice_store::EventKind::name).collect(),
            filters: FiltersView {
                accounts: filters.accounts.iter().map(ToString::to_string).collect(),
                programs: filters.programs.iter().map(ToString::to_string).collect(),
            },
            active,
            created: webhook.created.to_string(),
            last_triggered: webhook.last_triggered.map(|time| time.to_string()),
        }
    }
}

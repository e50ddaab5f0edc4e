//! An API key on the wire.

use serde::Serialize;
use sluice_store::{ApiKey, Quotas, Scope, Timestamp};
use utoipa::ToSchema;

/// An API key, without its secret, of which a hash alone is stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKey)]
pub(super) struct ApiKeyView {
    id: String,
    /// A name by which people know it; no two keys ever share one.
    name: String,
    /// What it may do: `webhooks:read`, `webhooks:write`, `keys:write`.
    scopes: Vec<&'static str>,
    /// When it was made.
    #[schema(format = DateTime)]
    created: String,
    /// When it stops being accepted by itself; null where that is only when it is revoked.
    #[schema(required, format = DateTime)]
    expires: Option<String>,
    /// When it was revoked; null where it was not.
    #[schema(required, format = DateTime)]
    revoked: Option<String>,
    /// Webhooks that belong to it.
    webhooks: u32,
    quotas: QuotasView,
}

/// Limits of a key's own. Null is as configured for all.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKeyQuotas)]
pub(super) struct QuotasView {
    /// Webhooks.
    #[schema(required)]
    webhooks: Option<u32>,
    /// Addresses that its webhooks watch together.
    #[schema(required)]
    addresses: Option<u32>,
    /// MiB of the messages that are kept for its webhooks.
    #[schema(required)]
    stored_mib: Option<u32>,
    /// Messages that are handed over to its endpoints in a second, repetitions included.
    #[schema(required)]
    messages_per_second: Option<u32>,
    /// Deliveries that are under way for it at once.
    #[schema(required)]
    delivery_slots: Option<u32>,
}

impl ApiKeyView {
    pub(super) fn of(key: ApiKey) -> Self {
        let text = |time: Timestamp| time.to_string();
        let scopes = Scope::ALL.into_iter();
        let scopes = scopes.filter(|scope| key.scopes.contain(*scope));
        let Quotas {
            webhooks,
            addresses,
            stored_mib,
            messages_per_second,
            delivery_slots,
        } = key.quotas;
        Self {
            id: key.id.to_string(),
            name: key.name,
            scopes: scopes.map(Scope::name).collect(),
            created: key.created.to_string(),
            expires: key.expires.map(text),
            revoked: key.revoked.map(text),
            webhooks: key.webhooks,
            quotas: QuotasView {
                webhooks,
                addresses,
                stored_mib,
                messages_per_second,
                delivery_slots,
            },
        }
    }
}

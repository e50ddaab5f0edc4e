//! Webhook as answers show it: definition, status and filter in force, without the secret.

use std::collections::BTreeMap;

use serde::Serialize;
use sluice_store::{
    EndpointState, FilterState, Store, StoreError, Timestamp, Webhook, WebhookDefinition,
};
use sluice_webhook_client::public_key;
use utoipa::ToSchema;

use super::{
    batch::BatchView, delivery_options::DeliveryOptionsView, filters_view::FiltersView, schema,
};

/// A webhook on the wire.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Webhook)]
pub(super) struct WebhookView {
    id: String,
    url: String,
    #[schema(value_type = Vec<schema::EventKind>)]
    events: Vec<&'static str>,
    filters: FiltersView,
    /// Of what becomes of the owner's other webhooks it is told.
    #[schema(value_type = Vec<schema::OperationKindName>)]
    operations: Vec<&'static str>,
    active: bool,
    /// ISO 8601, UTC.
    #[schema(format = DateTime)]
    created: String,
    /// ISO 8601, UTC; null before the first delivery that the receiver accepted.
    #[schema(required, format = DateTime)]
    last_triggered: Option<String>,
    #[schema(schema_with = schema::commitment)]
    commitment: &'static str,
    #[schema(schema_with = schema::order)]
    order: &'static str,
    #[schema(required)]
    description: Option<String>,
    headers: BTreeMap<String, String>,
    gzip: bool,
    /// Seconds.
    #[schema(required)]
    heartbeat: Option<u64>,
    /// Null where each message is posted alone.
    #[schema(required)]
    batch: Option<BatchView>,
    /// Null where it is delivered to as every webhook is.
    #[schema(required)]
    delivery: Option<DeliveryOptionsView>,
    status: Status,
}

/// What the service has to say about a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookStatus)]
struct Status {
    /// Counts the owner's writes; the ETag.
    version: u64,
    filter: FilterView,
    endpoint: EndpointView,
    /// Why the service switched it off, when it did.
    #[schema(required)]
    disabled_reason: Option<String>,
    /// Why the stream's server refuses the filter, in its own words, when it does: no event is matched then. An edit of the
    /// filter has it asked again.
    #[schema(required)]
    refused: Option<String>,
    /// What its events and filter ask for and the stream does not show, with the remedy; there where something is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    not_told: Option<&'static str>,
    /// What verifies the `v1a` signatures of its deliveries; there where they carry such.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    public_key: Option<String>,
    /// Until when the secret before the current one signs as well.
    #[schema(required, format = DateTime)]
    previous_secret_until: Option<String>,
    /// When a temporary webhook ends, unless its stream is open; null for all others.
    #[schema(required, format = DateTime)]
    expires: Option<String>,
}

/// What the attempts at deliveries say of the receiver.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EndpointHealth)]
struct EndpointView {
    /// `closed` while deliveries go on; `open` where it failed so often that nothing is sent until `pausedUntil`; `halfOpen` while
    /// one at a time is tried.
    #[schema(schema_with = schema::breaker)]
    breaker: &'static str,
    /// Failed attempts in a row.
    failures: u32,
    /// When the first of them ended, ISO 8601, UTC; null where none failed since the last that was accepted.
    #[schema(required, format = DateTime)]
    failing_since: Option<String>,
    /// ISO 8601, UTC; null where nothing is held back.
    #[schema(required, format = DateTime)]
    paused_until: Option<String>,
}

impl EndpointView {
    fn of(state: EndpointState) -> Self {
        let text = |time: Timestamp| time.to_string();
        Self {
            breaker: state.breaker.name(),
            failures: state.failures,
            failing_since: state.failing_since.map(text),
            paused_until: state.paused_until.map(text),
        }
    }
}

/// The set in force.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FilterInForce)]
pub(super) struct FilterView {
    /// Names the set: equal sets have equal digests.
    digest: String,
    /// How many accounts it holds.
    accounts: usize,
    /// How many programs it holds.
    programs: usize,
    /// How many owners of token accounts it holds.
    token_owners: usize,
    /// The slot after the last one read when the filter was written: from here on nothing is missed, since
    /// what lies before `inForceSlot` is read again. Null when no slot had been read.
    #[schema(required)]
    requested_slot: Option<u64>,
    /// First slot that the stream is known to have passed whole under this filter; null until it is known.
    #[schema(required)]
    in_force_slot: Option<u64>,
}

/// What a webhook on programs is not told where the stream shows no closes.
const NO_CLOSES: &str = "accountChange of an account of filters.programs that is closed, unless a transaction shows that the \
                         program gave it away: the stream's server takes no filter without keys (accounts.any of its limits is \
                         false), or geyser.watch-closed-accounts is off. Have the operator of Sluice name a server that takes one, \
                         or name the accounts in filters.accounts: of those each change is told";

async fn not_told(
    store: &Store,
    definition: &WebhookDefinition,
) -> Result<Option<&'static str>, StoreError> {
    if !definition.events.account_change || definition.filters.programs.is_empty() {
        return Ok(None);
    }
    let limits = store.address_limits().await?;
    Ok(limits.closes_unseen.then_some(NO_CLOSES))
}

impl FilterView {
    pub(super) async fn of(store: &Store, webhook: &Webhook) -> Result<Self, StoreError> {
        let filters = &webhook.definition.filters;
        let change = store.filter_change(webhook.matched_revision).await?;
        let proved_later = |state: &FilterState| state.revision >= webhook.matched_revision;
        let (requested_slot, in_force_slot) = match change {
            Some(change) => (change.requested_slot, change.in_force_slot),
            // The change itself is forgotten after thousands of others; the latest proof holds for it too.
            None => {
                let latest = store.filter_state().await?.filter(proved_later);
                (None, latest.map(|state| state.in_force_slot))
            }
        };
        Ok(Self {
            digest: webhook.filter_digest.clone(),
            accounts: filters.accounts.len(),
            programs: filters.programs.len(),
            token_owners: filters.token_owners.len(),
            requested_slot,
            // Nothing is streamed for a filter that is refused.
            in_force_slot: in_force_slot.filter(|_| webhook.refused.is_none()),
        })
    }
}

impl WebhookView {
    pub(super) async fn of(store: &Store, webhook: Webhook) -> Result<Self, StoreError> {
        let filter = FilterView::of(store, &webhook).await?;
        let not_told = not_told(store, &webhook.definition).await?;
        let endpoint = store.endpoint(&webhook.id).await?.unwrap_or_default();
        let secret = webhook.asymmetric_secret.as_ref();
        let public_key = secret.map(public_key).transpose();
        let public_key = public_key.map_err(|_| StoreError::Corrupt {
            what: "webhooks.secret",
        })?;
        let WebhookDefinition {
            url,
            events,
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
        } = webhook.definition;
        let text = |time: Timestamp| time.to_string();
        Ok(Self {
            id: webhook.id.to_string(),
            url,
            events: events.iter().map(sluice_store::EventKind::name).collect(),
            filters: FiltersView::of(&filters, &conditions),
            operations: operations.iter().map(|kind| kind.name()).collect(),
            active,
            created: webhook.created.to_string(),
            last_triggered: webhook.last_triggered.map(text),
            commitment: commitment.name(),
            order: order.name(),
            description,
            headers: headers.into_iter().collect(),
            gzip,
            heartbeat: heartbeat.map(|every| every.as_secs()),
            batch: batch.map(BatchView::of),
            delivery: DeliveryOptionsView::of(delivery),
            status: Status {
                version: webhook.version,
                filter,
                endpoint: EndpointView::of(endpoint),
                disabled_reason: webhook.disabled_reason,
                refused: webhook.refused,
                not_told,
                public_key,
                previous_secret_until: webhook.previous_secrets_until.map(text),
                expires: webhook.relay_until.map(text),
            },
        })
    }
}

//! Webhook definition as requests write it: body of create, replace and change, checked field by field.

pub(super) mod bodies;
mod filters;

use std::{collections::BTreeMap, collections::HashSet, time::Duration};

use axum::http::{HeaderName, HeaderValue};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use sluice_store::{Commitment, DeliveryOrder, EventKind, EventKinds, Filters, WebhookDefinition};
use sluice_webhook_client::{TargetFault, is_reserved_header, target};
use solana_pubkey::Pubkey;
use url::{Host, Url};
use utoipa::ToSchema;

use self::filters::FiltersBody;
use super::{
    batch::{self, BatchBody},
    delivery_options::{self, DeliveryOptionsBody},
    limits::{
        MAX_DESCRIPTION_CHARS, MAX_HEADER_BYTES, MAX_HEADERS, MAX_HEARTBEAT_SECS, MAX_URL_BYTES,
        MIN_HEARTBEAT_SECS,
    },
    operations, schema,
    settings::Settings,
};
use crate::{error::ApiError, extract::parse_pubkey};

/// The URL of a temporary webhook, which is never called: names under `.invalid` resolve nowhere, by
/// standard.
pub(super) const STREAM_URL: &str = "https://sluice-listen.invalid/";

/// A member that may be absent, null, or have a value.
type Given<T> = Option<Option<T>>;

/// The body. Absent fields are found by hand, so that the error names the field and not a position.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct DefinitionBody {
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::url)]
    url: Given<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::events)]
    events: Given<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = FiltersBody, required = false)]
    filters: Given<FiltersBody>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::optional_operations)]
    operations: Given<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::optional_active)]
    active: Given<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::optional_commitment)]
    commitment: Given<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::optional_order)]
    order: Given<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::optional_description)]
    description: Given<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::optional_headers)]
    headers: Given<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::optional_gzip)]
    gzip: Given<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::optional_heartbeat)]
    heartbeat: Given<u64>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<BatchBody>, required = false)]
    batch: Given<BatchBody>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<DeliveryOptionsBody>, required = false)]
    delivery: Given<DeliveryOptionsBody>,
    #[schema(ignore)]
    temporary: Option<bool>,
    /// What the service writes: allowed where a webhook is changed, so that what was read can be sent back.
    #[schema(schema_with = schema::ignored)]
    id: Option<IgnoredAny>,
    #[schema(schema_with = schema::ignored)]
    created: Option<IgnoredAny>,
    #[schema(schema_with = schema::ignored)]
    last_triggered: Option<IgnoredAny>,
    #[schema(schema_with = schema::ignored)]
    status: Option<IgnoredAny>,
}

/// Distinguishes null from absence.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Given<T>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl DefinitionBody {
    /// Checks every field of a new webhook, and whether it is a temporary one.
    ///
    /// # Errors
    /// The first fault, with its field and what would be right.
    pub(super) fn create(self, settings: &Settings) -> Result<(WebhookDefinition, bool), ApiError> {
        for (field, given) in [
            ("id", &self.id),
            ("created", &self.created),
            ("lastTriggered", &self.last_triggered),
            ("status", &self.status),
        ] {
            if given.is_some() {
                let fault = "is written by the service; leave it out";
                return Err(ApiError::invalid(field, fault));
            }
        }
        let temporary = self.temporary.unwrap_or(false);
        let definition = self.whole(settings, temporary)?;
        Ok((definition, temporary))
    }

    /// Checks every field of a definition that replaces another one: what is absent has its default.
    ///
    /// # Errors
    /// As [`DefinitionBody::create`].
    pub(super) fn replace(
        self,
        settings: &Settings,
        temporary: bool,
    ) -> Result<WebhookDefinition, ApiError> {
        self.refuse_temporary()?;
        self.whole(settings, temporary)
    }

    /// Checks the fields that are present and lays them over `before`; null restores a default.
    ///
    /// # Errors
    /// As [`DefinitionBody::create`].
    pub(super) fn change(
        self,
        before: WebhookDefinition,
        settings: &Settings,
        temporary: bool,
    ) -> Result<WebhookDefinition, ApiError> {
        self.refuse_temporary()?;
        self.over(before, settings, temporary)
    }

    fn refuse_temporary(&self) -> Result<(), ApiError> {
        match self.temporary {
            None => Ok(()),
            Some(_) => Err(ApiError::invalid(
                "temporary",
                "is decided when a webhook is created; leave it out",
            )),
        }
    }

    fn whole(
        mut self,
        settings: &Settings,
        temporary: bool,
    ) -> Result<WebhookDefinition, ApiError> {
        if temporary {
            self.url.get_or_insert_with(|| Some(STREAM_URL.to_owned()));
        }
        // Absence and null are the same fault here.
        self.url.get_or_insert_default();
        let told_of_operations = matches!(&self.operations, Some(Some(names)) if !names.is_empty());
        if !told_of_operations || self.events.is_some() || self.filters.is_some() {
            self.events.get_or_insert_default();
            self.filters.get_or_insert_default();
        }
        let blank =
            WebhookDefinition::new(String::new(), EventKinds::default(), Filters::default());
        self.over(blank, settings, temporary)
    }

    fn over(
        self,
        before: WebhookDefinition,
        settings: &Settings,
        temporary: bool,
    ) -> Result<WebhookDefinition, ApiError> {
        let mut after = before;
        if let Some(url) = self.url {
            after.url = required("url", url)?;
            check_url(&after.url, settings, temporary)?;
        }
        if let Some(names) = self.events {
            after.events = events(&required("events", names)?)?;
        }
        if let Some(body) = self.filters {
            required("filters", body)?.over(&mut after, settings)?;
        }
        if let Some(names) = self.operations {
            after.operations = operations::kinds("operations", &names.unwrap_or_default())?;
        }
        if let Some(active) = self.active {
            after.active = active.unwrap_or(true);
        }
        if let Some(name) = self.commitment {
            after.commitment = match name {
                Some(name) => named("commitment", &name, &Commitment::ALL, Commitment::name)?,
                None => WebhookDefinition::DEFAULT_COMMITMENT,
            };
        }
        if let Some(name) = self.order {
            after.order = match name {
                Some(name) => named("order", &name, &DeliveryOrder::ALL, DeliveryOrder::name)?,
                None => DeliveryOrder::default(),
            };
        }
        if let Some(text) = self.description {
            after.description = text.map(description).transpose()?;
        }
        if let Some(given) = self.headers {
            after.headers = headers(given.unwrap_or_default())?;
        }
        if let Some(gzip) = self.gzip {
            after.gzip = gzip.unwrap_or(false);
        }
        if let Some(seconds) = self.heartbeat {
            after.heartbeat = seconds.map(heartbeat).transpose()?;
        }
        if let Some(given) = self.batch {
            after.batch = given.map(batch::check).transpose()?;
        }
        if let Some(given) = self.delivery {
            let check = |body| delivery_options::check(body, settings.delivery_timeout);
            after.delivery = given.map(check).transpose()?.unwrap_or_default();
        }
        if temporary && !after.delivery.is_default() {
            let fault = "must be left out: the messages of a temporary webhook go down its stream as they come";
            return Err(ApiError::invalid("delivery", fault));
        }
        if temporary && after.batch.is_some() {
            let fault = "must be left out: the messages of a temporary webhook go down its stream one by one";
            return Err(ApiError::invalid("batch", fault));
        }
        check_together(&after)?;
        Ok(after)
    }
}

fn required<T>(field: &'static str, value: Option<T>) -> Result<T, ApiError> {
    value.ok_or(ApiError::MissingField { field })
}

/// Fields that are right by themselves may still ask for nothing together.
fn check_together(definition: &WebhookDefinition) -> Result<(), ApiError> {
    if definition.events.is_empty() {
        let has_addresses = definition.filters.count() > 0;
        if has_addresses || definition.operations.is_empty() {
            let beside = if has_addresses {
                ""
            } else {
                ", or operations at least one"
            };
            let fault = format!("must name at least one of {}{beside}", known_events());
            return Err(ApiError::invalid("events", fault));
        }
    }
    filters::check_together(&definition.conditions, definition.events)?;
    let filters = &definition.filters;
    if !filters.token_owners.is_empty() && !definition.events.transaction {
        let fault = "needs transaction in events; add it or leave this out";
        return Err(ApiError::invalid("filters.tokenOwners", fault));
    }
    if !definition.asks_for_nothing() {
        return Ok(());
    }
    Err(if filters.accounts.is_empty() {
        ApiError::invalid(
            "filters",
            "must name at least one account, program or token owner; an empty filter would match nothing",
        )
    } else {
        ApiError::invalid(
            "filters.programs",
            "must name at least one program, because programEvent is the only kind asked for",
        )
    })
}

fn check_url(text: &str, settings: &Settings, temporary: bool) -> Result<(), ApiError> {
    let fault = |fault: &str| Err(ApiError::invalid("url", fault));
    if temporary {
        if text == STREAM_URL {
            return Ok(());
        }
        return fault("must be left out: the messages of a temporary webhook go down its stream");
    }
    if text.len() > MAX_URL_BYTES {
        return fault(&format!(
            "is longer than {MAX_URL_BYTES} bytes; use a shorter one"
        ));
    }
    let url = match target::check(text, settings.reach) {
        Ok((url, _)) => url,
        Err(TargetFault::NoUrl) => {
            return fault("is not a URL; give one such as https://example.com/hook");
        }
        Err(TargetFault::Credentials) => {
            return fault(
                "must not hold a user name or password; put what your server asks for into headers",
            );
        }
        Err(TargetFault::PlainHttp | TargetFault::Scheme) => return fault("must be https"),
        Err(TargetFault::Address(reason)) => {
            return fault(&format!(
                "leads to an address that is not public ({reason}); use one that the internet reaches"
            ));
        }
    };
    if url.fragment().is_some() {
        return fault("must not have a fragment (#…), which is never sent");
    }
    if url.scheme() == "http" && !names_loopback(&url) {
        return fault("must be https; plain http is for loopback addresses");
    }
    Ok(())
}

/// Whether a URL says itself that it stays on this machine; what other names resolve to is judged at every
/// delivery.
fn names_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn known_events() -> String {
    EventKind::ALL.map(EventKind::name).join(", ")
}

fn events(names: &[String]) -> Result<EventKinds, ApiError> {
    let mut kinds = EventKinds::default();
    for (index, name) in names.iter().enumerate() {
        let field = || format!("events[{index}]");
        let kind = EventKind::from_name(name).ok_or_else(|| {
            ApiError::invalid(field(), format!("must be one of {}", known_events()))
        })?;
        if kinds.contains(kind) {
            return Err(ApiError::invalid(
                field(),
                format!("{kind} is named twice; name it once"),
            ));
        }
        kinds = kinds.iter().chain([kind]).collect();
    }
    Ok(kinds)
}

/// Repeated addresses are kept once: a list put together from several sources is no mistake.
pub(super) fn addresses(
    field: &str,
    texts: &[String],
    limit: usize,
) -> Result<Vec<Pubkey>, ApiError> {
    if texts.len() > limit {
        return Err(ApiError::invalid(
            field,
            format!(
                "holds {} addresses, but at most {limit} are allowed; use several webhooks",
                texts.len()
            ),
        ));
    }
    let mut seen = HashSet::with_capacity(texts.len());
    let mut addresses = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let address = text
            .parse()
            .or_else(|_| parse_pubkey(&format!("{field}[{index}]"), text))?;
        if seen.insert(address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// The value of a name.
fn named<T: Copy>(
    field: &'static str,
    text: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, ApiError> {
    let found = all.iter().copied().find(|value| name(*value) == text);
    found.ok_or_else(|| {
        let names: Vec<_> = all.iter().copied().map(name).collect();
        ApiError::invalid(field, format!("must be one of {}", names.join(", ")))
    })
}

fn description(text: String) -> Result<String, ApiError> {
    if text.chars().count() > MAX_DESCRIPTION_CHARS {
        return Err(ApiError::invalid(
            "description",
            format!("is longer than {MAX_DESCRIPTION_CHARS} characters; shorten it"),
        ));
    }
    Ok(text)
}

fn headers(given: BTreeMap<String, String>) -> Result<Vec<(String, String)>, ApiError> {
    if given.len() > MAX_HEADERS {
        return Err(ApiError::invalid(
            "headers",
            format!(
                "holds {}, but at most {MAX_HEADERS} are allowed",
                given.len()
            ),
        ));
    }
    let bytes: usize = given
        .iter()
        .map(|(name, value)| name.len().saturating_add(value.len()))
        .sum();
    if bytes > MAX_HEADER_BYTES {
        return Err(ApiError::invalid(
            "headers",
            format!("holds {bytes} bytes, but at most {MAX_HEADER_BYTES} are allowed"),
        ));
    }
    let mut seen = HashSet::new();
    given
        .into_iter()
        .map(|(name, value)| {
            let fault = |fault: &str| Err(ApiError::invalid(format!("headers.{name}"), fault));
            let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
                return fault("is not the name of an HTTP header");
            };
            if is_reserved_header(parsed.as_str()) {
                return fault("is set by the service or by HTTP itself; choose another name");
            }
            if !value.is_ascii() || HeaderValue::from_str(&value).is_err() {
                return fault("must have a value of visible ASCII characters and spaces");
            }
            if !seen.insert(parsed.clone()) {
                return fault("is named twice; name it once, in any case");
            }
            Ok((parsed.to_string(), value))
        })
        .collect()
}

fn heartbeat(seconds: u64) -> Result<Duration, ApiError> {
    if (MIN_HEARTBEAT_SECS..=MAX_HEARTBEAT_SECS).contains(&seconds) {
        return Ok(Duration::from_secs(seconds));
    }
    Err(ApiError::invalid(
        "heartbeat",
        format!("must be {MIN_HEARTBEAT_SECS} to {MAX_HEARTBEAT_SECS} seconds, or null for none"),
    ))
}

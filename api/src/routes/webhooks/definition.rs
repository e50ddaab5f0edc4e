//! What a subscriber may write: the body of create and update.

use std::collections::HashSet;

use serde::Deserialize;
use sluice_store::{EventKind, EventKinds, Filters, WebhookDefinition};
use solana_pubkey::Pubkey;
use url::{Host, Url};

use super::Settings;
use crate::{error::ApiError, extract::parse_pubkey};

/// Longest callback URL, bytes: what servers and proxies commonly accept.
pub(super) const MAX_URL_BYTES: usize = 2_048;

/// Most accounts of one webhook: they travel in one request body and are one row of the database.
pub(super) const MAX_ACCOUNTS: usize = 100_000;

/// Most programs of one webhook. Each may match a large part of all traffic, so a list that needs more
/// is better served by the accounts it is about.
pub(super) const MAX_PROGRAMS: usize = 1_000;

/// Longest body, bytes: [`MAX_ACCOUNTS`] keys of 44 characters with quotes, comma and indentation, and
/// room for the rest.
pub(super) const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// The body. Absent fields are found by hand, so that the error names the field and not a position.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DefinitionBody {
    url: Option<String>,
    events: Option<Vec<String>>,
    filters: Option<FiltersBody>,
    active: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FiltersBody {
    #[serde(default)]
    accounts: Vec<String>,
    #[serde(default)]
    programs: Vec<String>,
}

impl DefinitionBody {
    /// Checks every field; `active` is true when absent.
    ///
    /// # Errors
    /// The first fault, with its field and what would be right.
    pub(super) fn validate(self, settings: Settings) -> Result<WebhookDefinition, ApiError> {
        let url = self.url.ok_or(ApiError::MissingField { field: "url" })?;
        check_url(&url, settings)?;
        let events = events(
            &self
                .events
                .ok_or(ApiError::MissingField { field: "events" })?,
        )?;
        let filters = filters(
            &self
                .filters
                .ok_or(ApiError::MissingField { field: "filters" })?,
        )?;
        let program_events_only = !events.account_change && !events.transaction;
        if program_events_only && filters.programs.is_empty() {
            return Err(ApiError::invalid(
                "filters.programs",
                "must name at least one program, because programEvent is the only kind asked for",
            ));
        }
        Ok(WebhookDefinition {
            url,
            events,
            filters,
            active: self.active.unwrap_or(true),
        })
    }
}

fn check_url(text: &str, settings: Settings) -> Result<(), ApiError> {
    let fault = |fault: &str| Err(ApiError::invalid("url", fault));
    if text.len() > MAX_URL_BYTES {
        return fault(&format!(
            "is longer than {MAX_URL_BYTES} bytes; use a shorter one"
        ));
    }
    let Ok(url) = Url::parse(text) else {
        return fault("is not a URL; give one such as https://example.com/hook");
    };
    if !url.username().is_empty() || url.password().is_some() {
        return fault(
            "must not hold a user name or password; deliveries are authenticated by their signature",
        );
    }
    if url.fragment().is_some() {
        return fault("must not have a fragment (#…), which is never sent");
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if settings.allow_http_loopback && is_loopback(&url) => Ok(()),
        "http" if settings.allow_http_loopback => {
            fault("must be https; plain http is for loopback addresses")
        }
        _ => fault("must be https"),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn events(names: &[String]) -> Result<EventKinds, ApiError> {
    let known = || EventKind::ALL.map(EventKind::name).join(", ");
    if names.is_empty() {
        return Err(ApiError::invalid(
            "events",
            format!("must name at least one of {}", known()),
        ));
    }
    let mut kinds = EventKinds::default();
    for (index, name) in names.iter().enumerate() {
        let field = || format!("events[{index}]");
        let kind = EventKind::from_name(name)
            .ok_or_else(|| ApiError::invalid(field(), format!("must be one of {}", known())))?;
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

fn filters(body: &FiltersBody) -> Result<Filters, ApiError> {
    let filters = Filters {
        accounts: keys("filters.accounts", &body.accounts, MAX_ACCOUNTS)?,
        programs: keys("filters.programs", &body.programs, MAX_PROGRAMS)?,
    };
    if filters.accounts.is_empty() && filters.programs.is_empty() {
        return Err(ApiError::invalid(
            "filters",
            "must name at least one account or program; an empty filter would match nothing",
        ));
    }
    Ok(filters)
}

/// Repeated keys are kept once: a list put together from several sources is no mistake.
fn keys(field: &str, texts: &[String], limit: usize) -> Result<Vec<Pubkey>, ApiError> {
    if texts.len() > limit {
        return Err(ApiError::invalid(
            field,
            format!(
                "holds {} keys, but at most {limit} are allowed; use several webhooks",
                texts.len()
            ),
        ));
    }
    let mut seen = HashSet::with_capacity(texts.len());
    let mut keys = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let key = text
            .parse()
            .or_else(|_| parse_pubkey(&format!("{field}[{index}]"), text))?;
        if seen.insert(key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

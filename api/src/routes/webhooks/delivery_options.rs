//! Delivery options on the wire: how fast, how patiently and how often a webhook is delivered to.

use std::{ops::RangeInclusive, time::Duration};

use serde::{Deserialize, Serialize};
use sluice_store::{
    DeliveryOptions, MAX_ATTEMPTS_PER_SECOND, MAX_CONCURRENCY, MAX_OWN_RETRY_PAUSE_SECS,
    MAX_OWN_RETRY_PAUSES, MAX_PAYLOAD_BYTES, MIN_PAYLOAD_BYTES, Payload, SignatureVersion,
};
use sluice_webhook_client::SHORTEST_DEADLINE;
use utoipa::ToSchema;

use super::schema;
use crate::error::ApiError;

/// How the webhook is delivered to. A member that is absent or null is as for every webhook; null in its place, and all are.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = DeliveryOptionsBody)]
pub(super) struct DeliveryOptionsBody {
    /// Most attempts in flight at once. With `order: "perKey"` as many keys are delivered to at once.
    #[schema(minimum = 1, maximum = 16)]
    concurrency: Option<u32>,
    /// Most attempts begun in a second, by all processes together, evenly spread. A batch is one attempt.
    #[schema(minimum = 1, maximum = 1000)]
    max_per_second: Option<u32>,
    /// Deadline of an attempt, milliseconds; at most the one that is configured for all.
    #[schema(minimum = 1000, maximum = 30000)]
    timeout_ms: Option<u32>,
    /// Pauses between the attempts, seconds; after the last one the message is given up. None at all, and it is tried once.
    #[schema(max_items = 20, minimum = 1, maximum = 86400)]
    retry_pauses_seconds: Option<Vec<u32>>,
    /// What deliveries are signed by: `v1`, which is HMAC-SHA256 under the secret, or `v1a`, Ed25519 verified by
    /// `status.publicKey`, or both. `v1` unless given.
    #[schema(schema_with = schema::optional_signatures)]
    signatures: Option<Vec<String>>,
    /// Whether deliveries carry the data of their messages: `full`, which they do unless given, or `thin`. A thin body has
    /// `dataBytes`, the length of what is left out, in the place of `data`; `GET /api/webhooks/{id}/messages/{messageId}` answers it.
    #[schema(schema_with = schema::optional_payload)]
    payload: Option<String>,
    /// Bodies of more bytes than these are delivered thin.
    #[schema(minimum = 1024, maximum = 16777216)]
    max_payload_bytes: Option<u32>,
}

/// How a webhook is delivered to, where that is not as every webhook is. A member that is absent is as for all.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryOptions)]
pub(super) struct DeliveryOptionsView {
    /// Most attempts in flight at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, required = false)]
    concurrency: Option<u32>,
    /// Most attempts begun in a second, by all processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, required = false)]
    max_per_second: Option<u32>,
    /// Deadline of an attempt, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, required = false)]
    timeout_ms: Option<u32>,
    /// Pauses between the attempts, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<u32>, required = false)]
    retry_pauses_seconds: Option<Vec<u32>>,
    /// What deliveries are signed by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schema::signatures)]
    signatures: Option<Vec<&'static str>>,
    /// `thin` where deliveries do not carry the data of their messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schema::payload)]
    payload: Option<&'static str>,
    /// Bodies of more bytes than these are delivered thin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, required = false)]
    max_payload_bytes: Option<u32>,
}

impl DeliveryOptionsView {
    /// `None` where everything is as for every webhook.
    pub(super) fn of(options: DeliveryOptions) -> Option<Self> {
        if options.is_default() {
            return None;
        }
        let DeliveryOptions {
            concurrency,
            max_per_second,
            timeout_ms,
            retry_pauses_seconds,
            signatures,
            payload,
            max_payload_bytes,
        } = options;
        let names = |versions: Vec<SignatureVersion>| {
            versions.into_iter().map(SignatureVersion::name).collect()
        };
        Some(Self {
            concurrency,
            max_per_second,
            timeout_ms,
            retry_pauses_seconds,
            signatures: signatures.map(names),
            payload: (payload != Payload::default()).then(|| payload.name()),
            max_payload_bytes,
        })
    }
}

/// Checks the bounds, where the service's own deadline of an attempt is `deadline`.
pub(super) fn check(
    body: DeliveryOptionsBody,
    deadline: Duration,
) -> Result<DeliveryOptions, ApiError> {
    let DeliveryOptionsBody {
        concurrency,
        max_per_second,
        timeout_ms,
        retry_pauses_seconds,
        signatures: versions,
        payload: payload_name,
        max_payload_bytes,
    } = body;
    within("delivery.concurrency", concurrency, 1..=MAX_CONCURRENCY, "")?;
    within(
        "delivery.maxPerSecond",
        max_per_second,
        1..=MAX_ATTEMPTS_PER_SECOND,
        "",
    )?;
    let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    within(
        "delivery.timeoutMs",
        timeout_ms,
        millis(SHORTEST_DEADLINE)..=millis(deadline),
        " milliseconds, of which the longest is configured for all",
    )?;
    within(
        "delivery.maxPayloadBytes",
        max_payload_bytes,
        MIN_PAYLOAD_BYTES..=MAX_PAYLOAD_BYTES,
        " bytes",
    )?;
    let pauses = retry_pauses_seconds.as_deref().unwrap_or_default();
    if pauses.len() > MAX_OWN_RETRY_PAUSES {
        let fault = format!(
            "holds {}, but at most {MAX_OWN_RETRY_PAUSES} are allowed",
            pauses.len()
        );
        return Err(ApiError::invalid("delivery.retryPausesSeconds", fault));
    }
    for (index, pause) in pauses.iter().enumerate() {
        let field = format!("delivery.retryPausesSeconds[{index}]");
        let bounds = 1..=MAX_OWN_RETRY_PAUSE_SECS;
        within(&field, Some(*pause), bounds, " seconds, a day at most")?;
    }
    Ok(DeliveryOptions {
        concurrency,
        max_per_second,
        timeout_ms,
        retry_pauses_seconds,
        signatures: versions.map(signatures).transpose()?,
        payload: payload_name.map_or(Ok(Payload::default()), payload)?,
        max_payload_bytes,
    })
}

fn payload(name: String) -> Result<Payload, ApiError> {
    let found = Payload::ALL.into_iter().find(|one| one.name() == name);
    found.ok_or_else(|| {
        let names = Payload::ALL.map(Payload::name).join(", ");
        ApiError::invalid("delivery.payload", format!("must be one of {names}"))
    })
}

fn signatures(names: Vec<String>) -> Result<Vec<SignatureVersion>, ApiError> {
    const FIELD: &str = "delivery.signatures";
    let all = SignatureVersion::ALL;
    let known = || all.map(SignatureVersion::name).join(", ");
    if names.is_empty() {
        let fault = format!("must name at least one of {}", known());
        return Err(ApiError::invalid(FIELD, fault));
    }
    let unknown = |name: &String| all.into_iter().all(|version| version.name() != *name);
    if let Some(index) = names.iter().position(unknown) {
        let fault = format!("must be one of {}", known());
        return Err(ApiError::invalid(format!("{FIELD}[{index}]"), fault));
    }
    let named = |version: &SignatureVersion| names.iter().any(|name| name == version.name());
    Ok(all.into_iter().filter(named).collect())
}

fn within(
    field: &str,
    given: Option<u32>,
    bounds: RangeInclusive<u32>,
    unit: &str,
) -> Result<(), ApiError> {
    if given.is_none_or(|given| bounds.contains(&given)) {
        return Ok(());
    }
    let (least, most) = (bounds.start(), bounds.end());
    Err(ApiError::invalid(
        field,
        format!("must be {least} to {most}{unit}"),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(body: serde_json::Value) -> Result<DeliveryOptions, ApiError> {
        let body = serde_json::from_value(body).expect("a body");
        check(body, Duration::from_secs(15))
    }

    #[test]
    fn bounds_are_kept_and_named() {
        assert!(checked(json!({})).expect("nothing").is_default());
        let most = json!({
            "concurrency": 16, "maxPerSecond": 1000, "timeoutMs": 15_000, "retryPausesSeconds": vec![86_400; 20],
        });
        assert_eq!(checked(most).expect("in bounds").concurrency, Some(16));
        let once = checked(json!({ "retryPausesSeconds": [] })).expect("in bounds");
        assert_eq!(once.retry_pauses(), Some(Vec::new()));
        let both = checked(json!({ "signatures": ["v1a", "v1", "v1a"] })).expect("known");
        assert_eq!(both.signatures, Some(SignatureVersion::ALL.to_vec()));
        for (body, fault) in [
            (
                json!({ "concurrency": 0 }),
                "delivery.concurrency: must be 1 to 16",
            ),
            (
                json!({ "concurrency": 17 }),
                "delivery.concurrency: must be",
            ),
            (
                json!({ "maxPerSecond": 1001 }),
                "delivery.maxPerSecond: must be",
            ),
            (
                json!({ "timeoutMs": 999 }),
                "delivery.timeoutMs: must be 1000 to 15000",
            ),
            (
                json!({ "timeoutMs": 15_001 }),
                "delivery.timeoutMs: must be",
            ),
            (
                json!({ "retryPausesSeconds": [5, 0] }),
                "delivery.retryPausesSeconds[1]: must be 1 to 86400",
            ),
            (
                json!({ "retryPausesSeconds": vec![1; 21] }),
                "delivery.retryPausesSeconds: holds 21, but at most 20",
            ),
            (
                json!({ "signatures": [] }),
                "delivery.signatures: must name at least one of v1, v1a",
            ),
            (
                json!({ "signatures": ["v1", "v2"] }),
                "delivery.signatures[1]: must be one of v1, v1a",
            ),
        ] {
            let error = checked(body).expect_err(fault);
            assert!(error.to_string().starts_with(fault), "{error}");
        }
    }
}

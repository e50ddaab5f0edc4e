//! Ledger of what arrived, as the receivers saw it.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::HeaderMap;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sluice_store::WebhookId;
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook as Verifier,
};

/// Most faults kept: a few show the pattern.
const MOST_FAULTS: usize = 100;

/// A message that arrived, once or several times.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// Its body, as JSON.
    pub body: Value,
    digest: [u8; 32],
    /// When it came first, counted in things that happened to the receivers.
    pub first_arrival: u64,
    /// When it was first answered so that a sender may take it for accepted.
    pub first_acceptance: Option<u64>,
    /// How often it came.
    pub arrivals: u64,
}

#[cfg(test)]
impl Arrived {
    /// A message that came once.
    pub(super) fn once(body: Value, arrival: u64, acceptance: u64) -> Self {
        Self {
            digest: Sha256::digest(body.to_string()).into(),
            body,
            first_arrival: arrival,
            first_acceptance: Some(acceptance),
            arrivals: 1,
        }
    }
}

/// Longest time, in seconds, between the signing of a message and its arrival, as the interface says.
const TOLERANCE: u64 = 300;

/// The headers of a message, as they were written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Id of the message.
    pub id: Option<String>,
    /// When it was signed, unix seconds.
    pub timestamp: Option<String>,
    /// One signature or several, with blanks between them.
    pub signature: Option<String>,
}

impl Headers {
    /// Those of a request.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
        Self {
            id: text(HEADER_WEBHOOK_ID),
            timestamp: text(HEADER_WEBHOOK_TIMESTAMP),
            signature: text(HEADER_WEBHOOK_SIGNATURE),
        }
    }
}

/// A request that came whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The webhook whose receiver it came to.
    pub webhook: String,
    /// Its headers, as far as they are a message's.
    pub headers: Headers,
    /// Its body.
    pub body: String,
    /// Whether the answer was one that a sender may take for acceptance.
    pub accepted: bool,
    /// When it came, unix seconds.
    pub at: i64,
    /// How far the clocks of senders were off at most until then, seconds.
    pub clocks_off: u64,
}

/// What one webhook was sent.
pub struct Received {
    verifier: Verifier,
    /// Messages by id.
    pub messages: BTreeMap<String, Arrived>,
}

/// Everything that arrived.
#[derive(Default)]
pub struct Ledger {
    clock: u64,
    /// By webhook.
    pub webhooks: BTreeMap<String, Received>,
    /// What no message should be like.
    pub faults: BTreeSet<String>,
}

impl Ledger {
    /// Expects messages of a webhook, signed with this secret.
    ///
    /// # Errors
    /// When the secret is none.
    pub fn expect(
        &mut self,
        webhook: &WebhookId,
        secret: &str,
    ) -> Result<(), standardwebhooks::WebhookError> {
        let received = Received {
            verifier: Verifier::new(secret)?,
            messages: BTreeMap::new(),
        };
        self.webhooks.insert(webhook.to_string(), received);
        Ok(())
    }

    /// Notes something that should not be.
    pub fn fault(&mut self, fault: String) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.insert(fault);
        }
    }

    /// Takes a request that arrived whole.
    pub fn take(&mut self, arrival: &Arrival) {
        self.clock += 1;
        let now = self.clock;
        let taken = self.received(&arrival.webhook).and_then(|received| {
            let id = arrival.headers.id.as_deref();
            let id = id.ok_or("a message without an id")?;
            let signed = is_signed(&received.verifier, id, arrival);
            signed.map_err(|fault| format!("{id} is not signed as it should be: {fault}"))?;
            received.keep(id, arrival.body.as_bytes(), arrival.accepted, now)
        });
        if let Err(fault) = taken {
            self.fault(fault);
        }
    }

    fn received(&mut self, webhook: &str) -> Result<&mut Received, String> {
        let received = self.webhooks.get_mut(webhook);
        received.ok_or_else(|| format!("a message for {webhook:?}, which no script made"))
    }

    /// Messages that a receiver has accepted.
    #[must_use]
    pub fn accepted(&self) -> usize {
        let messages = self
            .webhooks
            .values()
            .flat_map(|each| each.messages.values());
        messages
            .filter(|message| message.first_acceptance.is_some())
            .count()
    }
}

impl Received {
    fn keep(&mut self, id: &str, body: &[u8], accepted: bool, now: u64) -> Result<(), String> {
        let digest = Sha256::digest(body).into();
        let message = match self.messages.entry(id.to_owned()) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(fresh) => {
                let body: Value = serde_json::from_slice(body)
                    .map_err(|error| format!("the body of {id} is no JSON: {error}"))?;
                fresh.insert(Arrived {
                    body,
                    digest,
                    first_arrival: now,
                    first_acceptance: None,
                    arrivals: 0,
                })
            }
        };
        message.arrivals += 1;
        if accepted {
            message.first_acceptance.get_or_insert(now);
        }
        if message.digest != digest {
            return Err(format!("{id} came with two bodies"));
        }
        Ok(())
    }
}

/// Whether the webhook's secret has made one of the signatures, a short time before it came.
fn is_signed(verifier: &Verifier, id: &str, arrival: &Arrival) -> Result<(), String> {
    let headers = &arrival.headers;
    let timestamp = headers
        .timestamp
        .as_deref()
        .and_then(|text| text.parse().ok());
    let timestamp: i64 = timestamp.ok_or("no timestamp")?;
    let signatures = headers.signature.as_deref().ok_or("no signature")?;
    let own = verifier
        .sign(id, timestamp, arrival.body.as_bytes())
        .map_err(|error| error.to_string())?;
    if signatures.split(' ').all(|signature| signature != own) {
        return Err("by another secret, or something else was signed".to_owned());
    }
    let off = timestamp.abs_diff(arrival.at);
    if off > TOLERANCE + arrival.clocks_off {
        return Err(format!("the timestamp is {off} s off"));
    }
    Ok(())
}

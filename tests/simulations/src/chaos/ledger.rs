//! Ledger of what arrived, as the receivers saw it.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::HeaderMap;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sluice_store::WebhookId;
use standardwebhooks::{HEADER_WEBHOOK_ID, Webhook as Verifier};

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

    /// Takes a request that arrived whole; `accepted` when its answer is one that a sender may take for
    /// acceptance.
    pub fn take(&mut self, webhook: &str, headers: &HeaderMap, body: &[u8], accepted: bool) {
        self.clock += 1;
        let now = self.clock;
        if let Err(fault) = self.try_take(webhook, headers, body, accepted, now) {
            self.fault(fault);
        }
    }

    fn try_take(
        &mut self,
        webhook: &str,
        headers: &HeaderMap,
        body: &[u8],
        accepted: bool,
        now: u64,
    ) -> Result<(), String> {
        let received = self
            .webhooks
            .get_mut(webhook)
            .ok_or_else(|| format!("a message for {webhook:?}, which no script made"))?;
        let id = headers
            .get(HEADER_WEBHOOK_ID)
            .and_then(|id| id.to_str().ok())
            .ok_or("a message without an id")?
            .to_owned();
        received
            .verifier
            .verify(body, headers)
            .map_err(|error| format!("{id} is not signed as it should be: {error}"))?;
        let digest = Sha256::digest(body).into();
        let message = match received.messages.entry(id.clone()) {
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

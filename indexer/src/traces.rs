//! Traces of messages: the way from a slot to the attempts to deliver, as spans. Several processes may each have a part in one.
//!
//! `slot` goes from the first sight of it to the update that lets its events be emitted, `match` from there until its messages are
//! written for the store, `store` until they are on the disk, and each `attempt` is an exchange with the endpoint.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use service_kit::traces::{KeyValue, Span, Step, Traces};
use sluice_store::{Attempt, Commitment, Lease, MessageId, NewMessage};

/// Slots whose first sight is remembered: until one is finalized thirty others follow, and more where votes are late.
const MAX_SLOTS: usize = 1_024;

const SLOT: Step = Step::once("slot");
const MATCH: Step = Step::once("match");
const STORE: Step = Step::once("store");

/// The traces of all messages. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct MessageTraces {
    traces: Traces,
    /// When slots were seen first.
    seen: Arc<Mutex<BTreeMap<u64, SystemTime>>>,
}

/// A message of a batch whose trace is sent.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    id: MessageId,
    slot: u64,
    commitment: Commitment,
}

/// The moments of a batch on its way to the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    /// The update came that let its messages be emitted.
    pub(crate) emitted: SystemTime,
    /// They are written.
    pub(crate) written: SystemTime,
    /// They are on the disk.
    pub(crate) stored: SystemTime,
}

impl MessageTraces {
    /// Those that go this way.
    #[must_use]
    pub fn new(traces: Traces) -> Self {
        Self {
            traces,
            seen: Arc::default(),
        }
    }

    /// The stream shows a slot.
    pub(crate) fn saw_slot(&self, slot: u64, now: impl FnOnce() -> SystemTime) {
        if !self.traces.is_on() {
            return;
        }
        let mut seen = self.seen.lock();
        seen.entry(slot).or_insert_with(now);
        while seen.len() > MAX_SLOTS {
            seen.pop_first();
        }
    }

    /// The messages whose traces are sent.
    pub(crate) fn chosen(&self, messages: &[NewMessage]) -> Vec<Traced> {
        if !self.traces.is_on() {
            return Vec::new();
        }
        let chosen = messages
            .iter()
            .filter(|message| self.traces.of(message.id.as_str()).is_some());
        let traced = chosen.map(|message| Traced {
            id: message.id.clone(),
            slot: message.slot,
            commitment: message.commitment,
        });
        traced.collect()
    }

    /// Messages are stored. Those that were before, by a process that died, are said again under the same ids.
    pub(crate) fn stored(&self, messages: &[Traced], moments: Moments) {
        for message in messages {
            let Some(trace) = self.traces.of(message.id.as_str()) else {
                continue;
            };
            let seen = self.seen.lock().get(&message.slot).copied();
            let spans = [
                (SLOT, None, seen.unwrap_or(moments.emitted), moments.emitted),
                (MATCH, Some(SLOT), moments.emitted, moments.written),
                (STORE, Some(MATCH), moments.written, moments.stored),
            ];
            for (step, parent, from, until) in spans {
                let slot = i64::try_from(message.slot).unwrap_or(i64::MAX);
                trace.record(Span {
                    step,
                    parent,
                    from,
                    until,
                    is_request: false,
                    attributes: vec![
                        KeyValue::new("messaging.message.id", message.id.as_str().to_owned()),
                        KeyValue::new("sluice.slot", slot),
                        KeyValue::new("sluice.commitment", message.commitment.name()),
                    ],
                    error: None,
                });
            }
        }
    }

    /// An attempt to deliver a message ended.
    pub(crate) fn attempted(&self, lease: &Lease, attempt: &Attempt, retry_index: u32) {
        let Some(trace) = self.traces.of(lease.id.as_str()) else {
            return;
        };
        let began = SystemTime::from(attempt.started);
        let since = began.duration_since(SystemTime::UNIX_EPOCH);
        let millis = since.unwrap_or(Duration::ZERO).as_millis();
        let mut attributes = vec![
            KeyValue::new("messaging.message.id", lease.id.as_str().to_owned()),
            KeyValue::new("sluice.webhook", lease.webhook.as_str().to_owned()),
            KeyValue::new("http.request.resend_count", i64::from(retry_index)),
        ];
        if let Some(status) = attempt.status {
            let status = KeyValue::new("http.response.status_code", i64::from(status));
            attributes.push(status);
        }
        trace.record(Span {
            // Processes that attempt the same after each other do not know of how many attempts there were.
            step: Step {
                name: "attempt",
                time: u64::try_from(millis).unwrap_or(u64::MAX),
            },
            parent: Some(STORE),
            from: began,
            until: began + attempt.duration,
            is_request: true,
            attributes,
            error: attempt.error.clone(),
        });
    }
}

//! [`Staged`]: what the process that stages messages remembers of them, in memory (pure).

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::{NewMessage, PackedMessages};

/// What the process that stages remembers of it: at least all that is staged.
#[derive(Debug, Default)]
pub(super) struct Staged(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    ids: HashSet<String>,
    /// How many are leased of each webhook.
    leased: HashMap<i64, u32>,
    /// Webhooks of which some are due, since they were held back.
    due: HashSet<i64>,
    bytes: u64,
}

/// What is remembered of a message.
pub(super) struct StagedMessage<'m> {
    /// The ordinal of its webhook.
    pub(super) webhook: i64,
    pub(super) id: &'m str,
    /// Bytes of its body.
    pub(super) bytes: u64,
    pub(super) is_leased: bool,
}

impl Staged {
    /// Nothing is staged any more.
    pub(super) fn settled(&self) {
        *self.0.lock() = Remembered::default();
    }

    /// Whether these messages may be staged too: no two are the same, and there is room for all of them.
    pub(super) fn takes(&self, messages: &[NewMessage]) -> bool {
        let bytes = messages.iter().map(|message| message.body.len_at_most());
        let bytes = bytes.fold(0, u64::saturating_add);
        let staged = self.0.lock();
        let ids: HashSet<&str> = messages.iter().map(|message| message.id.as_str()).collect();
        ids.len() == messages.len()
            && staged.ids.len().saturating_add(ids.len()) <= PackedMessages::MOST
            && staged.bytes.saturating_add(bytes) <= PackedMessages::MOST_BYTES
    }

    /// Whether one of these messages may be staged: it is remembered, or another process has staged something.
    pub(super) fn may_know(&self, messages: &[NewMessage], is_settled: bool) -> bool {
        let staged = self.0.lock();
        let mut ids = messages.iter().map(|message| message.id.as_str());
        match staged.ids.is_empty() {
            true => !is_settled,
            false => ids.any(|id| staged.ids.contains(id)),
        }
    }

    /// How many deliveries to a webhook are staged that are leased.
    pub(super) fn leased(&self, webhook: i64) -> u32 {
        self.0.lock().leased.get(&webhook).copied().unwrap_or(0)
    }

    /// Whether messages of a webhook are staged that are due.
    pub(super) fn has_due(&self, webhook: i64) -> bool {
        self.0.lock().due.contains(&webhook)
    }

    /// Remembers these messages.
    pub(super) fn remember<'m>(&self, messages: impl Iterator<Item = StagedMessage<'m>>) {
        let mut staged = self.0.lock();
        for message in messages {
            staged.bytes = staged.bytes.saturating_add(message.bytes);
            staged.ids.insert(message.id.to_owned());
            if message.is_leased {
                let leased = staged.leased.entry(message.webhook).or_default();
                *leased = leased.saturating_add(1);
            } else {
                staged.due.insert(message.webhook);
            }
        }
    }
}

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
    /// How many are leased of each webhook: all of them.
    leased: HashMap<i64, u32>,
    bytes: u64,
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

    /// How many deliveries to a webhook are staged, all of them leased.
    pub(super) fn leased(&self, webhook: i64) -> u32 {
        self.0.lock().leased.get(&webhook).copied().unwrap_or(0)
    }

    /// Remembers messages of webhooks with these ordinals, their ids and the lengths of their bodies.
    pub(super) fn remember<'m>(&self, messages: impl Iterator<Item = (i64, &'m str, u64)>) {
        let mut staged = self.0.lock();
        for (webhook, id, bytes) in messages {
            staged.bytes = staged.bytes.saturating_add(bytes);
            staged.ids.insert(id.to_owned());
            let leased = staged.leased.entry(webhook).or_default();
            *leased = leased.saturating_add(1);
        }
    }
}

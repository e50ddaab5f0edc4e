//! [`StagedBatch`]: messages as they are staged, one row of one table, and what their process remembers of them ([`Staged`]).

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use super::message_rows::MessageRow;
use crate::{
    NewMessage, StoreError,
    backend::{Bound, Connection, Row, bound_rows, json_rows, values},
};

/// Most staged messages, and bytes of their bodies: those of a busy slot. What is more comes faster than it is sent, and would
/// only be written twice.
const MOST_STAGED: usize = 512;
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// How much is compressed: the least, which takes a millisecond for what a slot emits.
const LEVEL: i32 = 1;

/// How many of the ids `v` messages have.
const KNOWN: Bound<'_> = bound_rows!(
    [id text],
    "SELECT count(*) AS known FROM v WHERE v.id IS NOT NULL AND EXISTS (SELECT 1 FROM messages m WHERE m.id = v.id)"
);

/// Messages that are staged together.
#[derive(Debug, Default)]
pub(super) struct StagedBatch {
    messages: Vec<MessageRow>,
    bodies: String,
}

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
            && staged.ids.len().saturating_add(ids.len()) <= MOST_STAGED
            && staged.bytes.saturating_add(bytes) <= MOST_BYTES
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

    fn remember(&self, batch: &StagedBatch) {
        let mut staged = self.0.lock();
        let bytes = u64::try_from(batch.bodies.len()).unwrap_or(u64::MAX);
        staged.bytes = staged.bytes.saturating_add(bytes);
        for message in &batch.messages {
            staged.ids.insert(message.id.clone());
            let leased = staged.leased.entry(message.webhook).or_default();
            *leased = leased.saturating_add(1);
        }
    }
}

impl StagedBatch {
    /// Whether it has no messages.
    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds a message with its body.
    pub(super) fn push(&mut self, message: MessageRow, body: &str) {
        self.messages.push(message);
        self.bodies.push_str(body);
    }

    /// Stages them. False when one of them is stored already.
    pub(super) async fn write(
        self,
        write: &mut Connection,
        staged: &Staged,
    ) -> Result<bool, StoreError> {
        if self.is_empty() {
            return Ok(true);
        }
        let ids = self.messages.iter();
        let ids = ids.map(|message| values![message.id.as_str()]).collect();
        for row in &write.rows_over(KNOWN, ids).await? {
            if row.integer("known")? > 0 {
                return Ok(false);
            }
        }
        // Also where the transaction is undone: to remember more than there is costs a look-up.
        staged.remember(&self);
        let pending = i64::try_from(self.messages.len()).unwrap_or(i64::MAX);
        let messages = json_rows(&self.messages)?;
        write
            .execute(
                "INSERT INTO staged_batches (pending, messages, bodies) VALUES ($1, $2, $3)",
                values![pending, packed(&messages)?, packed(&self.bodies)?],
            )
            .await?;
        Ok(true)
    }

    /// As it is stored.
    pub(super) fn of(row: &Row) -> Result<Self, StoreError> {
        let messages = serde_json::from_str(&unpacked(&row.bytes("messages")?)?);
        Ok(Self {
            messages: messages.map_err(|_| CORRUPT)?,
            bodies: unpacked(&row.bytes("bodies")?)?,
        })
    }

    /// The messages, each with its body.
    pub(super) fn into_messages(self) -> Result<Vec<(MessageRow, String)>, StoreError> {
        let mut bodies = self.bodies.as_str();
        let messages = self.messages.into_iter().map(|message| {
            let (body, rest) = bodies.split_at_checked(message.body_bytes).ok_or(CORRUPT)?;
            bodies = rest;
            Ok((message, body.to_owned()))
        });
        messages.collect()
    }
}

/// A text, compressed: it takes less than half as long then until it is on the disk.
fn packed(text: &str) -> Result<Vec<u8>, StoreError> {
    zstd::encode_all(text.as_bytes(), LEVEL).map_err(|error| StoreError::Database(error.into()))
}

fn unpacked(packed: &[u8]) -> Result<String, StoreError> {
    let text = zstd::decode_all(packed).map_err(|_| CORRUPT)?;
    String::from_utf8(text).map_err(|_| CORRUPT)
}

const CORRUPT: StoreError = StoreError::Corrupt {
    what: "staged_batches",
};

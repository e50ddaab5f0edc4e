//! Numbers messages and inserts them with their deliveries, leased as far as a request goes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use serde::Serialize;

use super::{
    bodies::SharedBodies,
    lanes::{self, Lane},
    lease_on_insert::LeaseOnInsert,
    message_rows::{self, Rows},
    numbered::Numbered,
    rows,
    staged_batch::StagedBatch,
    store::Store,
};
use crate::{
    Commit, Commitment, DeliveryOrder, LeaseRequest, LeasedDelivery, NewMessage, StoreError,
    Timestamp, WebhookSet,
    backend::{Connection, json_rows, over_rows, signed, unsigned, values},
};

/// Messages that are put in order and written together: the more, the more of them lie side by side in the tables.
const CHUNK: usize = 8_192;

/// Bytes of bodies written together, of more than one message. Of those whose end is shared the beginning counts.
const CHUNK_BYTES: u64 = 4 * 1024 * 1024;

/// Ids looked up by one statement: enough that the statement costs little for each.
const IDS: usize = 256;

/// Whether messages are expected to be stored already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// They are not: the chain goes on.
    New,
    /// Some are: slots are replayed.
    Known,
}

/// What was inserted.
#[derive(Default)]
pub(super) struct Inserted {
    /// How many messages of each commitment.
    pub(super) counts: BTreeMap<Commitment, u64>,
    pub(super) leased: Vec<LeasedDelivery>,
    /// The webhooks of deliveries that have their turn and are not leased.
    pub(super) unleased: WebhookSet,
    /// Whether some of them are staged.
    pub(super) is_staged: bool,
}

/// A webhook as far as numbering goes.
struct Numbering {
    ordinal: i64,
    next: u64,
    order: DeliveryOrder,
    /// For how long a message waits for others, unless they fill a batch before.
    wait: Duration,
}

#[derive(Serialize)]
struct Id<'a> {
    id: &'a str,
}

#[derive(Serialize)]
struct SequenceRow {
    webhook: i64,
    next: i64,
}

/// Messages on their way into the tables.
struct Insertion<'a, 'r> {
    numbering: HashMap<&'a str, Numbering>,
    /// Lanes in which something is pending.
    busy: HashSet<Lane>,
    shared: SharedBodies,
    leases: Option<LeaseOnInsert<'r>>,
    unleased: WebhookSet,
    /// What is staged, where what is leased and in no lane is.
    staged: Option<StagedBatch>,
    is_staged: bool,
    now: Timestamp,
    counts: BTreeMap<Commitment, u64>,
    bytes: u64,
}

/// Inserts the messages of a commit. `None` when some that were expected to be new are known: the transaction must be
/// undone then.
pub(super) async fn insert_messages(
    store: &Store,
    write: &mut Connection,
    commit: &Commit<'_>,
    request: Option<&LeaseRequest>,
    expected: Expected,
) -> Result<Option<Inserted>, StoreError> {
    if commit.messages.is_empty() {
        return Ok(Some(Inserted::default()));
    }
    let (numbering, is_settled) = numbering(write, commit.messages).await?;
    if is_settled {
        store.staged.settled();
    }
    if expected == Expected::New && store.staged.may_know(commit.messages, is_settled) {
        return Ok(None);
    }
    let leases = match request {
        Some(request) => {
            let webhooks = numbering.values().map(|webhook| webhook.ordinal);
            Some(LeaseOnInsert::of(write, webhooks, request, store).await?)
        }
        None => None,
    };
    let is_local = write.is_sqlite() && leases.is_some();
    let stages = is_local && expected == Expected::New && store.staged.takes(commit.messages);
    let fresh = match expected {
        Expected::New => commit.messages.iter().collect(),
        Expected::Known => fresh(write, commit.messages).await?,
    };
    let busy = lanes::busy(write, &lanes_of(&numbering, &fresh)).await?;
    let is_inserted = |message: &&&NewMessage| numbering.contains_key(message.webhook.as_str());
    let bodies = fresh.iter().filter(is_inserted);
    let bodies: Vec<_> = bodies.map(|message| &message.body).collect();
    let shared = SharedBodies::store(write, &bodies).await?;
    let pieces: Vec<_> = chunks(&fresh, &shared).collect();
    let mut insertion = Insertion {
        numbering,
        busy: busy.into_iter().collect(),
        shared,
        staged: stages.then(StagedBatch::default),
        is_staged: false,
        leases,
        unleased: WebhookSet::default(),
        now: commit.now,
        counts: BTreeMap::new(),
        bytes: 0,
    };
    for piece in pieces {
        if !message_rows::insert(write, insertion.rows_of(piece)?).await? {
            return Ok(None);
        }
    }
    let staged = insertion.staged.take().unwrap_or_default();
    insertion.is_staged = !staged.is_empty();
    if !staged.write(write, &store.staged).await? {
        return Ok(None);
    }
    insertion.finish(write).await.map(Some)
}

impl Insertion<'_, '_> {
    /// The rows of a piece that are not staged.
    fn rows_of(&mut self, piece: &[&NewMessage]) -> Result<Vec<Rows>, StoreError> {
        let mut rows = Vec::with_capacity(piece.len());
        for message in piece {
            if let Some(numbered) = self.numbered(message)? {
                rows.extend(self.rows(numbered)?);
            }
        }
        Ok(rows)
    }

    /// Numbers a message, and counts it; `None` when its webhook is gone.
    fn numbered<'m>(
        &mut self,
        message: &'m NewMessage,
    ) -> Result<Option<Numbered<'m>>, StoreError> {
        let Some(webhook) = self.numbering.get_mut(message.webhook.as_str()) else {
            return Ok(None);
        };
        let number = webhook.next;
        webhook.next = number.saturating_add(1);
        let ordinal = webhook.ordinal;
        let due_at = self.now.after(webhook.wait);
        let lane = lanes::lane_of(webhook.order, message.order_key.as_deref());
        let waits = lane.as_ref().is_some_and(|lane| {
            !self.busy.insert(Lane {
                webhook: ordinal,
                lane: lane.clone(),
            })
        });
        let stored = self.shared.stored(&message.body, number);
        let count = self.counts.entry(message.commitment).or_default();
        *count = count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(stored.length);
        Ok(Some(Numbered {
            message,
            ordinal,
            number,
            sequence: signed(number, "sequence")?,
            due_at,
            lane,
            waits,
            stored,
        }))
    }

    /// Leases a message as far as the request goes; its rows, and those of its delivery, unless it is staged.
    fn rows(&mut self, numbered: Numbered<'_>) -> Result<Option<Rows>, StoreError> {
        let (ordinal, length) = (numbered.ordinal, numbered.stored.length);
        let reserved = match &mut self.leases {
            Some(leases) if !numbered.waits => leases.reserve(ordinal, length),
            _ => None,
        };
        let Some(reserved) = reserved else {
            if numbered.waits {
                return numbered.rows(None, None, self.now).map(Some);
            }
            self.unleased.0.insert(ordinal);
            let due_at = Some(numbered.due_at);
            return numbered.rows(due_at, None, self.now).map(Some);
        };
        let (until, token) = reserved.terms();
        if let (Some(staged), None) = (&mut self.staged, &numbered.lane) {
            let row = numbered.row(Some(until), Some(token), self.now)?;
            staged.push(row, &numbered.stored.body);
            reserved.lease(numbered.leased_when_staged(self.now));
            return Ok(None);
        }
        reserved.lease(numbered.leased(self.now));
        numbered.rows(Some(until), Some(token), self.now).map(Some)
    }

    async fn finish(self, write: &mut Connection) -> Result<Inserted, StoreError> {
        let count: u64 = self.counts.values().sum();
        if count > 0 {
            write_sequences(write, &self.numbering).await?;
            let added = values![signed(count, "count")?, signed(self.bytes, "size")?];
            write
                .execute(
                    "UPDATE usage SET messages = messages + $1, bytes = bytes + $2",
                    added,
                )
                .await?;
        }
        Ok(Inserted {
            counts: self.counts,
            leased: self.leases.map_or_else(Vec::new, LeaseOnInsert::leased),
            unleased: self.unleased,
            is_staged: self.is_staged,
        })
    }
}

/// The messages in pieces that are written together.
fn chunks<'a, 'm>(
    messages: &'a [&'m NewMessage],
    shared: &SharedBodies,
) -> impl Iterator<Item = &'a [&'m NewMessage]> {
    let mut rest = messages;
    std::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let is_within = |message: &&NewMessage| {
            bytes = bytes.saturating_add(shared.stored_at_most(&message.body));
            bytes <= CHUNK_BYTES
        };
        let fitting = rest.iter().take(CHUNK).copied().take_while(is_within);
        let length = fitting.count().max(1).min(rest.len());
        let (chunk, later) = rest.split_at(length);
        rest = later;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// The webhooks of the messages that still exist, and whether nothing is staged. Until the transaction ends no other one numbers
/// their messages or changes their lanes.
async fn numbering<'a>(
    write: &mut Connection,
    messages: &'a [NewMessage],
) -> Result<(HashMap<&'a str, Numbering>, bool), StoreError> {
    let names: HashSet<&str> = messages
        .iter()
        .map(|message| message.webhook.as_str())
        .collect();
    let ids: Vec<_> = names.iter().map(|id| Id { id }).collect();
    let ids = json_rows(&ids)?;
    write
        .lock(
            "SELECT s.webhook FROM sequences s JOIN webhooks w ON w.ordinal = s.webhook
             WHERE w.id IN (SELECT t.id FROM json_to_recordset(CAST($1 AS json)) AS t (id text))
             ORDER BY s.webhook FOR UPDATE OF s",
            values![ids.clone()],
        )
        .await?;
    let found = write
        .rows(
            over_rows!(
                [id text],
                "SELECT w.ordinal, w.id, w.delivery_order, w.batch_messages, w.batch_bytes, w.batch_wait_ms, s.next,
                     (SELECT count(*) FROM staged_batches) AS staged
                 FROM v JOIN webhooks w ON w.id = v.id JOIN sequences s ON s.webhook = w.ordinal
                 WHERE w.deleted = 0"
            ),
            values![ids],
        )
        .await?;
    let (mut numbering, mut is_settled) = (HashMap::new(), false);
    for row in &found {
        is_settled = row.integer("staged")? == 0;
        let id = row.text("id")?;
        if let Some(name) = names.get(id.as_str()) {
            let webhook = Numbering {
                ordinal: row.integer("ordinal")?,
                next: unsigned(row.integer("next")?, "sequences.next")?,
                order: rows::order(row)?,
                wait: rows::batch(row)?.map_or(Duration::ZERO, |batch| batch.max_wait),
            };
            numbering.insert(*name, webhook);
        }
    }
    Ok((numbering, is_settled))
}

/// Those of the messages that are not stored, each once.
async fn fresh<'a>(
    write: &mut Connection,
    messages: &'a [NewMessage],
) -> Result<Vec<&'a NewMessage>, StoreError> {
    let mut seen = HashSet::new();
    for chunk in messages.chunks(IDS) {
        let ids: Vec<_> = chunk
            .iter()
            .map(|message| Id {
                id: message.id.as_str(),
            })
            .collect();
        let known = write
            .rows(
                over_rows!([id text], "SELECT m.id FROM v JOIN messages m ON m.id = v.id"),
                values![json_rows(&ids)?],
            )
            .await?;
        for row in &known {
            seen.insert(row.text("id")?);
        }
    }
    Ok(messages
        .iter()
        .filter(|message| seen.insert(message.id.as_str().to_owned()))
        .collect())
}

fn lanes_of(numbering: &HashMap<&str, Numbering>, messages: &[&NewMessage]) -> Vec<Lane> {
    let lanes: HashSet<Lane> = messages
        .iter()
        .filter_map(|message| {
            let webhook = numbering.get(message.webhook.as_str())?;
            Some(Lane {
                webhook: webhook.ordinal,
                lane: lanes::lane_of(webhook.order, message.order_key.as_deref())?,
            })
        })
        .collect();
    lanes.into_iter().collect()
}

async fn write_sequences(
    write: &mut Connection,
    numbering: &HashMap<&str, Numbering>,
) -> Result<(), StoreError> {
    let next = numbering
        .values()
        .map(|webhook| {
            Ok(SequenceRow {
                webhook: webhook.ordinal,
                next: signed(webhook.next, "sequence")?,
            })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    write
        .execute(
            over_rows!(
                [webhook bigint, next bigint],
                "UPDATE sequences SET next = v.next FROM v WHERE sequences.webhook = v.webhook"
            ),
            values![json_rows(&next)?],
        )
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{BodyTemplate, Commitment, EventKind, MessageId, MessageKind, WebhookId};

    fn message(suffix: &Arc<str>) -> NewMessage {
        NewMessage {
            id: MessageId::from_bytes([1; 32]),
            webhook: WebhookId::from_random([1; 16]),
            kind: MessageKind::Event(EventKind::Transaction),
            commitment: Commitment::Confirmed,
            slot: 1,
            order_key: None,
            body: BodyTemplate::new(String::new(), Arc::clone(suffix)),
        }
    }

    fn lengths(messages: &[NewMessage]) -> Vec<usize> {
        let messages: Vec<&NewMessage> = messages.iter().collect();
        let shared = SharedBodies::default();
        chunks(&messages, &shared).map(<[_]>::len).collect()
    }

    #[test]
    fn a_statement_writes_no_more_than_its_bytes_or_a_single_message() {
        let of = |bytes: u64| {
            let bytes = usize::try_from(bytes).expect("fits");
            message(&Arc::from("x".repeat(bytes)))
        };
        let (small, third, large) = (of(100), of(CHUNK_BYTES / 3), of(CHUNK_BYTES * 3));
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&vec![small.clone(); CHUNK + 1]), [CHUNK, 1]);
        assert_eq!(lengths(&vec![large.clone(); 3]), [1, 1, 1]);
        assert_eq!(lengths(&vec![third; 5]), [2, 2, 1]);
        assert_eq!(lengths(&[small.clone(), large, small]), [1, 1, 1]);
    }
}

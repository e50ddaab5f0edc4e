//! Numbers messages and inserts them with their deliveries, leased as far as a request goes.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use serde::Serialize;

use super::{
    bodies::SharedBodies,
    lanes::{self, Lane},
    lease_on_insert::{HeldBack, LeaseOnInsert},
    message_rows,
    numbered::{Numbered, Turn},
    rows,
    staged_batch::stage,
    store::Store,
};
use crate::{
    Commit, Commitment, DeliveryOrder, LeaseRequest, LeasedDelivery, NewMessage, PackedMessages,
    StoreError, Timestamp, WebhookSet,
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
    /// The webhooks of deliveries that have their turn, are not leased, and could be now.
    pub(super) unleased: WebhookSet,
    /// Those of which the process holds as much as their endpoints bear.
    pub(super) full: WebhookSet,
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

/// The webhooks of messages that are to be numbered.
struct Numberings<'a> {
    /// Those that still exist, by their ids.
    webhooks: HashMap<&'a str, Numbering>,
    /// Whether nothing is staged.
    is_settled: bool,
    /// Whether messages may be staged: the database is one in which that gains something, and no process of an earlier release
    /// runs, which would not see them.
    may_stage: bool,
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
    leases: Option<LeaseOnInsert<'r>>,
    unleased: WebhookSet,
    full: WebhookSet,
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
    let Numberings {
        webhooks: numbering,
        is_settled,
        may_stage,
    } = numberings(write, commit.messages).await?;
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
    let fresh = match expected {
        Expected::New => commit.messages.iter().collect(),
        Expected::Known => fresh(write, commit.messages).await?,
    };
    let busy = lanes::busy(write, &lanes_of(&numbering, &fresh)).await?;
    let mut insertion = Insertion {
        numbering,
        busy: busy.into_iter().collect(),
        leases,
        unleased: WebhookSet::default(),
        full: WebhookSet::default(),
        now: commit.now,
        counts: BTreeMap::new(),
        bytes: 0,
    };
    let numbered = insertion.number(&fresh)?;
    let packed = match expected {
        Expected::New if may_stage && insertion.may_be_staged(&numbered) => {
            packed(store, commit, &numbered)
        }
        _ => None,
    };
    let is_new = match &packed {
        Some(packed) => stage(write, &store.staged, (&numbered, packed), commit.now).await?,
        None => insert(write, &numbered, commit.now).await?,
    };
    if !is_new {
        return Ok(None);
    }
    insertion.lease(&numbered);
    insertion.finish(write, packed.is_some()).await.map(Some)
}

/// The messages of a commit as they are staged, where all of them may be.
fn packed<'a>(
    store: &Store,
    commit: &Commit<'a>,
    numbered: &[Numbered<'_>],
) -> Option<Cow<'a, PackedMessages>> {
    let are_all = numbered.len() == commit.messages.len();
    if !are_all || !store.staged.takes(commit.messages) {
        return None;
    }
    let ahead = commit
        .packed
        .filter(|packed| packed.count == numbered.len());
    ahead.map(Cow::Borrowed).or_else(|| {
        let packed = PackedMessages::pack(commit.messages);
        packed.map(Cow::Owned)
    })
}

/// Inserts messages where they belong. False when one of them was known.
async fn insert(
    write: &mut Connection,
    numbered: &[Numbered<'_>],
    now: Timestamp,
) -> Result<bool, StoreError> {
    let bodies: Vec<_> = numbered.iter().map(|each| &each.message.body).collect();
    let shared = SharedBodies::store(write, &bodies).await?;
    for chunk in chunks(numbered, |each| shared.stored_at_most(&each.message.body)) {
        let rows = chunk.iter().map(|each| each.rows(&shared, now)).collect();
        if !message_rows::insert(write, rows).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Insertion<'_, '_> {
    /// Numbers messages, and counts them, but for those whose webhooks are gone.
    fn number<'m>(&mut self, messages: &[&'m NewMessage]) -> Result<Vec<Numbered<'m>>, StoreError> {
        let numbered = messages.iter().map(|message| self.numbered(message));
        numbered.filter_map(Result::transpose).collect()
    }

    fn numbered<'m>(
        &mut self,
        message: &'m NewMessage,
    ) -> Result<Option<Numbered<'m>>, StoreError> {
        let Some(webhook) = self.numbering.get_mut(message.webhook.as_str()) else {
            return Ok(None);
        };
        let (ordinal, number) = (webhook.ordinal, webhook.next);
        webhook.next = number.saturating_add(1);
        let due = Turn::Due(self.now.after(webhook.wait));
        let lane = lanes::lane_of(webhook.order, message.order_key.as_deref());
        let waits = lane.as_ref().is_some_and(|lane| {
            !self.busy.insert(Lane {
                webhook: ordinal,
                lane: lane.clone(),
            })
        });
        let turn = if waits { Turn::Waits } else { due };
        let mut numbered = Numbered::new(message, (ordinal, number), lane, turn)?;
        if !waits {
            self.give_turn(&mut numbered);
        }
        let count = self.counts.entry(message.commitment).or_default();
        *count = count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(numbered.length);
        Ok(Some(numbered))
    }

    /// Counts a lease on what is due, as far as the request goes.
    fn give_turn(&mut self, numbered: &mut Numbered<'_>) {
        let webhook = numbered.ordinal;
        if let Some(leases) = &mut self.leases {
            if let Some((until, token)) = leases.reserve(webhook, numbered.length) {
                numbered.turn = Turn::Leased(until, token);
                return;
            }
            match leases.held_back(webhook) {
                Some(HeldBack::Pauses) => return,
                Some(HeldBack::Full) => {
                    self.full.0.insert(webhook);
                    return;
                }
                None => {}
            }
        }
        self.unleased.0.insert(webhook);
    }

    /// Whether these messages may be staged, some of them leased: none is in a lane, and none has to be looked for before it settles.
    fn may_be_staged(&self, numbered: &[Numbered<'_>]) -> bool {
        self.unleased.is_empty()
            && numbered.iter().all(|each| each.lane.is_none())
            && numbered.iter().any(|each| each.turn.lease().is_some())
    }

    /// Gives the leases that were counted.
    fn lease(&mut self, numbered: &[Numbered<'_>]) {
        let Some(leases) = &mut self.leases else {
            return;
        };
        for each in numbered.iter().filter(|each| each.turn.lease().is_some()) {
            leases.lease(each.ordinal, each.delivery(self.now));
        }
    }

    async fn finish(self, write: &mut Connection, is_staged: bool) -> Result<Inserted, StoreError> {
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
            full: self.full,
            is_staged,
        })
    }
}

/// Messages in pieces that are written together.
fn chunks<T>(messages: &[T], bytes_of: impl Fn(&T) -> u64) -> impl Iterator<Item = &[T]> {
    let mut rest = messages;
    std::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let is_within = |message: &&T| {
            bytes = bytes.saturating_add(bytes_of(message));
            bytes <= CHUNK_BYTES
        };
        let fitting = rest.iter().take(CHUNK).take_while(is_within);
        let length = fitting.count().max(1).min(rest.len());
        let (chunk, later) = rest.split_at(length);
        rest = later;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// The webhooks of these messages. Until the transaction ends no other one numbers their messages or changes their lanes.
async fn numberings<'a>(
    write: &mut Connection,
    messages: &'a [NewMessage],
) -> Result<Numberings<'a>, StoreError> {
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
                     (SELECT count(*) FROM staged_batches) AS staged, (SELECT shares_bodies FROM usage) AS shares_bodies
                 FROM v JOIN webhooks w ON w.id = v.id JOIN sequences s ON s.webhook = w.ordinal
                 WHERE w.deleted = 0"
            ),
            values![ids],
        )
        .await?;
    let mut numberings = Numberings {
        webhooks: HashMap::new(),
        is_settled: false,
        may_stage: false,
    };
    for row in &found {
        numberings.is_settled = row.integer("staged")? == 0;
        numberings.may_stage = write.is_sqlite() && row.flag("shares_bodies")?;
        let id = row.text("id")?;
        if let Some(name) = names.get(id.as_str()) {
            let webhook = Numbering {
                ordinal: row.integer("ordinal")?,
                next: unsigned(row.integer("next")?, "sequences.next")?,
                order: rows::order(row)?,
                wait: rows::batch(row)?.map_or(Duration::ZERO, |batch| batch.max_wait),
            };
            numberings.webhooks.insert(*name, webhook);
        }
    }
    Ok(numberings)
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
    use super::*;

    #[test]
    fn a_statement_writes_no_more_than_its_bytes_or_a_single_message() {
        let lengths = |bytes: &[u64]| -> Vec<_> {
            let chunks = chunks(bytes, |bytes| *bytes);
            chunks.map(<[_]>::len).collect()
        };
        let (small, third, large) = (100, CHUNK_BYTES / 3, CHUNK_BYTES * 3);
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&vec![small; CHUNK + 1]), [CHUNK, 1]);
        assert_eq!(lengths(&[large; 3]), [1, 1, 1]);
        assert_eq!(lengths(&[third; 5]), [3, 2]);
        assert_eq!(lengths(&[small, large, small]), [1, 1, 1]);
    }
}
